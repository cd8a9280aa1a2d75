module rdmeta/bench/peers

go 1.19
