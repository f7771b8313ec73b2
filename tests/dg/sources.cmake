light_tests(dg/protocol_random_test.cpp)
