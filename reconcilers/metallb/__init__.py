"""MetalLB's BGP kinds as a dialect: translated to FRRConfigurations, and merged with others."""
