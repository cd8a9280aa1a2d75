"""Gold: measures of a cluster by month, from silver. docs/measures.md defines each of them."""
