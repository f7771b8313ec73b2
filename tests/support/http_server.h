// A small web server on localhost that tests can make misbehave.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sparsight::testing {

// The response of the server to one request.
struct HttpResponse {
  std::string body;
  int status = 200;
  long cut_after = -1;        // closes the connection after this many bytes of the body; -1: never
  bool ranges = true;         // honours Range (206, 416)
  std::string location = {};  // of a redirection
  // "body", "headers": sends them again and again until the client hangs up, with a pause after each time.
  std::string endless = {};
  double pause_seconds = 0;
  size_t range_shift = 0;  // sends the bytes that many further on than asked for, and says so
};

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The responses to requests for `path`, one after the other; the last one is repeated. Other paths get 404.
  void answer(const std::string& path, std::vector<HttpResponse> responses);
  std::string address(const std::string& path) const;  // "http://127.0.0.1:PORT" + path

  // The requests so far: "/file" or "/file 100-" with its range.
  std::vector<std::string> requests() const;

 private:
  void serve();
  void serve_one(int connection);

  int socket_ = -1, port_ = 0;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<HttpResponse>> responses_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace sparsight::testing
