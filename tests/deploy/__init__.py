"""Tests of what installs Waggle in a cluster: the chart, the plain manifests, roles, the image."""
