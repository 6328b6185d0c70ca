"""The process with the BFD sessions of a node: it goes on while the agent is restarted or updated.

* `process_messages`: the messages between agent and process
* `realtime`: scheduling before other processes, memory that stays, capabilities that go
* `settings_file`: what the sessions are configured with, for the next process
* `service`: the loop, on `speaker.bfd.shell`
"""
