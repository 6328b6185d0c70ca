{{/* Rules of the enabled API dialects. Made by `make manifests` from what they declare.
     Do not edit. Each takes the cells of the configuration. */}}

{{- define "waggle.dialects.agent" }}
{{- if ne (toString (.cilium).enabled) "false" }}
- apiGroups: [""]
  resources:
    - namespaces
    - services
  verbs: [list, watch]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpadvertisements
    - ciliumbgpclusterconfigs
    - ciliumbgpnodeconfigoverrides
    - ciliumbgpnodeconfigs
    - ciliumbgppeerconfigs
    - ciliumbgppeeringpolicies
    - ciliumloadbalancerippools
    - ciliumnodes
    - ciliumpodippools
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources:
    - endpointslices
  verbs: [list, watch]
{{- end }}
{{- end }}

{{- define "waggle.dialects.agent.report" }}
{{- if ne (toString (.cilium).enabled) "false" }}
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpnodeconfigs
  verbs: [get]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpnodeconfigs/status
  verbs: [patch]
{{- end }}
{{- end }}

{{- define "waggle.dialects.operator" }}
{{- if ne (toString (.cilium).enabled) "false" }}
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpclusterconfigs
    - ciliumbgpnodeconfigoverrides
    - ciliumbgpnodeconfigs
    - ciliumbgppeerconfigs
    - ciliumnodes
  verbs: [list, watch]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpnodeconfigs
  verbs: [get, create, patch, delete]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpclusterconfigs
    - ciliumbgppeerconfigs
  verbs: [get]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpclusterconfigs/status
    - ciliumbgppeerconfigs/status
  verbs: [patch]
{{- if (.cilium).translatePeeringPolicies }}
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpadvertisements
    - ciliumbgppeeringpolicies
    - ciliumloadbalancerippools
  verbs: [list, watch]
{{- end }}
{{- if (.cilium).translatePeeringPolicies }}
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpadvertisements
    - ciliumbgpclusterconfigs
    - ciliumbgpnodeconfigoverrides
    - ciliumbgppeerconfigs
  verbs: [get, create, patch, delete]
{{- end }}
{{- end }}
{{- end }}

{{- define "waggle.dialects.operator.migrate" }}
{{- if ne (toString (.cilium).enabled) "false" }}
- apiGroups: [apiextensions.k8s.io]
  resources:
    - customresourcedefinitions
  resourceNames:
    - ciliumbgpclusterconfigs.cilium.io
    - ciliumbgppeerconfigs.cilium.io
    - ciliumbgpadvertisements.cilium.io
    - ciliumbgpnodeconfigs.cilium.io
    - ciliumbgpnodeconfigoverrides.cilium.io
  verbs: [get]
- apiGroups: [apiextensions.k8s.io]
  resources:
    - customresourcedefinitions/status
  resourceNames:
    - ciliumbgpclusterconfigs.cilium.io
    - ciliumbgppeerconfigs.cilium.io
    - ciliumbgpadvertisements.cilium.io
    - ciliumbgpnodeconfigs.cilium.io
    - ciliumbgpnodeconfigoverrides.cilium.io
  verbs: [patch]
- apiGroups: [cilium.io]
  resources:
    - ciliumbgpadvertisements
    - ciliumbgpclusterconfigs
    - ciliumbgpnodeconfigoverrides
    - ciliumbgpnodeconfigs
    - ciliumbgppeerconfigs
  verbs: [list, patch]
{{- end }}
{{- end }}
