torch_tests(catalogue/recipes_test.cpp)
