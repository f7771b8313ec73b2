light_tests(
  support/http_server.cpp
  support/program.cpp)
