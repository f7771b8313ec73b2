// A service at an address: connections, limits and the syntax of HTTP, by cpp-httplib.
#pragma once

#include <memory>
#include <string>

#include "sparsight/serve/service.h"

namespace sparsight::serve {

struct ListenOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8000;                    // 0: any free one
  int64_t max_bytes = int64_t{32} << 20;  // of a request's body, unpacked
  int64_t max_connections = 64;
  std::chrono::seconds timeout{30};  // for a request to arrive, and for its answer to go out
};

class HttpServer {
 public:
  // Listens at once. Raises Error where it cannot, or where Sparsight was built without cpp-httplib.
  HttpServer(Service& service, const ListenOptions& options);
  ~HttpServer();  // answers the requests that have arrived, and closes all connections

  int port() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sparsight::serve
