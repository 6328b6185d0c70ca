"""A virtual machine for tests that need what this machine's kernel lacks: VRF devices.

``python -m tests.support.vm COMMAND...`` boots a kernel that `install-vm` has unpacked, over the files
of this machine (read-only: what the command writes is gone with the VM), runs one command in this
folder, and has its output and exit status. The processor is emulated: everything takes about ten
times as long, so that the limits of tests are multiplied (`tests.support.wait`).
"""
