"""Cases as data: objects, and the sessions, routes and problems that ``waggle render`` gives them."""
