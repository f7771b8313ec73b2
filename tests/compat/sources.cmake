light_tests(compat/compat_test.cpp)
