from sparsight_native import main

main()
