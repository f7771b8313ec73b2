// What the server answers at each address, without the transport: http_server.h brings requests here.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/serve/batch_runner.h"
#include "sparsight/serve/inference_protocol.h"

namespace sparsight::serve {

struct ServiceOptions {
  BatcherOptions batches = {};
  int64_t threads = 1;               // of the model
  int64_t max_pixels = 1 << 24;      // of a picture
  std::string token = {};            // "": none is needed
  std::chrono::seconds timeout{30};  // of a request, from its head to its answer
};

struct HttpRequest {
  std::string method, path;  // the path is decoded
  std::multimap<std::string, std::string> query = {};
  std::string authorization = {};  // the header
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

HttpAnswer error_answer(int status, const std::string& message);

class Service {
 public:
  Service(ServedModel model, const ServiceOptions& options);

  // The answer where the request's head suffices, an error among them; nothing where its body is needed.
  std::optional<HttpAnswer> answer_head(const HttpRequest& request, const Gauges& now) const;
  HttpAnswer answer_body(const HttpRequest& request, const std::string& body);

  // The name under which the request is counted.
  std::string route_name(const HttpRequest& request) const;

  Metrics& metrics() { return metrics_; }
  void stop() { batcher_.stop(); }  // what waits is answered, and nothing more is taken

 private:
  // One address, by which it is counted too.
  struct Route {
    std::string path;
    bool open = false;  // needs no token
    std::function<HttpAnswer(const Gauges& now)> get = {};
    std::function<HttpAnswer(const HttpRequest& request, const std::string& body)> post = {};

    const char* allowed() const { return post ? "POST" : "GET, HEAD"; }
  };

  std::vector<Route> make_routes();
  const Route* find(const std::string& path) const;
  HttpAnswer predict(const HttpRequest& request, const std::string& body);
  HttpAnswer infer(const std::string& body, bool explain);
  std::vector<ImageAnswer> answers(std::vector<ImageRequest> images);
  HttpAnswer metrics_text(Gauges now) const;

  ServedModel model_;
  ServiceOptions options_;
  Metrics metrics_;
  BatchRunner runner_;
  std::counting_semaphore<> decoders_;  // bounds the memory of pictures and requests that are being read
  std::vector<Route> routes_;
  Batcher batcher_;  // last: its thread uses what is above
};

}  // namespace sparsight::serve
