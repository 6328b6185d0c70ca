{{- define "waggle.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the Pods; takes {root, part}. Constant within a release. */}}
{{- define "waggle.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{/* Labels of an object; takes {root, part}. */}}
{{- define "waggle.labels" -}}
{{ include "waggle.selector" . }}
app.kubernetes.io/part-of: waggle
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of a Pod; takes {root, part}. No version, which would restart all Pods. */}}
{{- define "waggle.podLabels" -}}
{{ include "waggle.selector" . }}
app.kubernetes.io/part-of: waggle
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with (index .root.Values .part).podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "waggle.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Name of a ServiceAccount; takes {root, part}. */}}
{{- define "waggle.account" -}}
{{- $account := (index .root.Values .part).serviceAccount -}}
{{- $made := printf "%s-%s" (include "waggle.fullname" .root) .part -}}
{{- ternary (default $made $account.name) (default "default" $account.name) $account.create -}}
{{- end -}}

{{/* "true" where the API server has ValidatingAdmissionPolicies: Kubernetes 1.30, or a version that was not released. */}}
{{- define "waggle.admissionPolicies" -}}
{{- /* Not by semverCompare, which fails for an API server without a released version. */ -}}
{{- $version := .Capabilities.KubeVersion -}}
{{- $major := int $version.Major -}}
{{- $minor := int (regexFind "^[0-9]+" $version.Minor) -}}
{{- if or (eq $major 0) (gt $major 1) (and (eq $major 1) (ge $minor 30)) }}true{{ end -}}
{{- end -}}

{{- define "waggle.secretsNamespace" -}}
{{- default (printf "%s-bgp-secrets" (include "waggle.fullname" .)) .Values.secrets.namespace -}}
{{- end -}}

{{/* "true" for a namespace that the release makes or has made; takes {root, name}. `helm template` sees no cluster. */}}
{{- define "waggle.makesNamespace" -}}
{{- if not (has .name (list .root.Release.Namespace "kube-system" "default")) -}}
{{- $found := lookup "v1" "Namespace" "" .name -}}
{{- $annotations := dig "metadata" "annotations" dict $found -}}
{{- $release := get $annotations "meta.helm.sh/release-name" -}}
{{- $of := get $annotations "meta.helm.sh/release-namespace" -}}
{{- if or (not $found) (and (eq $release .root.Release.Name) (eq $of .root.Release.Namespace)) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" where agents install received routes in the kernel. */}}
{{- define "waggle.kernelRoutes" -}}
{{- $enabled := toString .Values.agent.kernelRoutes.enabled -}}
{{- $cells := mergeOverwrite (deepCopy .Values.cells) (deepCopy .Values.agent.cells) -}}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (include "waggle.dialects.kernel" $cells | trim)) -}}
true
{{- end -}}
{{- end -}}

{{/* The configuration file of a program; takes {root, part}. */}}
{{- define "waggle.configuration" -}}
{{- $root := .root -}}
{{- $own := index $root.Values .part -}}
{{- $secrets := ternary (include "waggle.secretsNamespace" $root) "" $root.Values.secrets.enabled -}}
{{- $made := dict
  "http" (dict "address" (printf "%s:%d" $own.http.host (int $own.http.port)))
  "resources" (dict "secretsNamespace" $secrets)
  "kubernetes" (dict "kubeconfig" "in-cluster") -}}
{{- if eq .part "operator" -}}
{{- $_ := set $made "operator" (dict
  "fib" (ternary $root.Values.agent.kernelRoutes.fib false (eq (include "waggle.kernelRoutes" $root) "true"))
  "deployment" (printf "%s-operator" (include "waggle.fullname" $root))
  "leaseNamespace" $root.Release.Namespace) -}}
{{- with $own.webhook -}}
{{- if .enabled -}}
{{- $name := printf "%s-webhook" (include "waggle.fullname" $root) -}}
{{- $_ := set $made "webhook" (dict
  "address" (printf "%s:%d" .host (int .port))
  "configuration" $name
  "storedIn" $name
  "names" (list (printf "%s.%s.svc" $name $root.Release.Namespace))) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- if $root.Values.operator.enabled -}}
{{- $_ := set $made "node" (dict "clusterAddresses" $root.Release.Namespace) -}}
{{- end -}}
{{- with $root.Values.serviceAddresses -}}
{{- $intent := dict "advertiseNamespaces" .namespaces -}}
{{- range $key, $given := dict "advertiseAllow" .allow "advertisePermit" .permit "serviceCidr" .serviceCidr -}}
{{- if $given -}}
{{- $_ := set $intent $key $given -}}
{{- end -}}
{{- end -}}
{{- $_ := set $made "intent" $intent -}}
{{- end -}}
{{- if include "waggle.kernelRoutes" $root -}}
{{- $_ := set $made "kernel" (dict "fib" $own.kernelRoutes.fib "socket" "/run/waggle-kernel/kernel.sock") -}}
{{- else if has "NET_ADMIN" $own.capabilities -}}
{{- $_ := set $made "kernel" (dict "enabled" false) -}}
{{- end -}}
{{- if $own.bfd.enabled -}}
{{- $_ := set $made "bfd" (dict "bfd" true "socket" "/run/waggle-bfd/bfd.sock") -}}
{{- end -}}
{{- if $own.snapshot.hostPath -}}
{{- $_ := set $made "snapshot" (dict "file" "/var/lib/waggle/snapshot") -}}
{{- $_ := set $made "claims" (dict "directory" "/var/lib/waggle") -}}
{{- end -}}
{{- end -}}
{{- with $root.Values.routerIdAllocationIpPool -}}
{{- $_ := set $made "cilium" (dict "routerIdAllocationIpPool" .) -}}
{{- end -}}
{{- $cells := mergeOverwrite (deepCopy $root.Values.cells) (deepCopy $own.cells) $made -}}
{{- range include "waggle.dialects.feeds" $root | fromYamlArray -}}
{{- $fed := default dict (index $cells .fed) -}}
{{- if eq (toString (index $cells .feeder).enabled) "true" -}}
{{- if eq (toString $fed.enabled) "false" -}}
{{- fail (printf "cells.%s needs cells.%s, which is switched off; switch both on, or both off" .feeder .fed) -}}
{{- end -}}
{{- $_ := set $cells .fed (mergeOverwrite (deepCopy $fed) (dict "enabled" true)) -}}
{{- end -}}
{{- end -}}
{{- toYaml (dict "cells" $cells) -}}
{{- end -}}

{{/* Environment of a program besides its own variables; takes {root, part}. */}}
{{- define "waggle.environment" -}}
{{- with .root.Values.apiServer }}
{{- if .host }}
- {name: KUBERNETES_SERVICE_HOST, value: {{ .host | quote }}}
- {name: KUBERNETES_SERVICE_PORT, value: {{ .port | quote }}}
{{- end }}
{{- end }}
{{- with (index .root.Values .part).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "true" where an address for metrics is on loopback; takes the values of the part. */}}
{{- define "waggle.loopback" -}}
{{- if or (hasPrefix "127." .http.host) (has .http.host (list "localhost" "::1" "[::1]")) }}true{{ end -}}
{{- end -}}

{{/* Annotations of a Pod; takes {root, part}. */}}
{{- define "waggle.annotations" -}}
{{- $own := index .root.Values .part -}}
checksum/configuration: {{ include "waggle.configuration" . | sha256sum }}
{{- if and .root.Values.metrics.annotations (not (include "waggle.loopback" $own)) }}
prometheus.io/scrape: "true"
prometheus.io/port: {{ $own.http.port | quote }}
prometheus.io/path: /metrics
{{- end }}
{{- with $own.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The request of a probe; takes {root, part, path}. By default the kubelet connects to the address of the Pod. */}}
{{- define "waggle.probe" -}}
{{- $host := (index .root.Values .part).http.host | trimPrefix "[" | trimSuffix "]" -}}
httpGet:
  path: {{ .path }}
  port: http
{{- if not (has $host (list "0.0.0.0" "::")) }}
  host: {{ $host | quote }}
{{- end }}
{{- end -}}
