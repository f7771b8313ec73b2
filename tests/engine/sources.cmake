torch_free_tests(engine/engine_test.cpp)
