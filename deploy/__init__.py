"""What is needed to run Waggle in a cluster: the image, the Helm chart, and manifests rendered from it.

`generate` writes the parts that follow from the code; no program imports anything of this.
"""
