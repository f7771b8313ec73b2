// Instead of http_server.cpp, in builds without cpp-httplib.
#include "sparsight/core/error.h"
#include "sparsight/serve/http_server.h"

namespace sparsight::serve {

class HttpServer::Implementation {};

HttpServer::HttpServer(Service&, const ListenOptions&) {
  fail("this build has no HTTP server: cpp-httplib was missing; install libcpp-httplib-dev (0.11.4 to 0.14) and build ",
       "again");
}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return 0; }

}  // namespace sparsight::serve
