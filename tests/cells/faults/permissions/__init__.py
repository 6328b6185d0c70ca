"""What may not be read or written is the matter of one dialect: agent, operator and webhook go on.

Each permission is taken away in turn, before the start, while all API dialects are on. Never looks
inside the operator; of an agent the peers of the intent are compared.
"""
