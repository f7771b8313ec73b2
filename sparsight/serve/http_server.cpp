#include "sparsight/serve/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <thread>

#include "sparsight/core/background_thread.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/serve/connection_stream.h"
#include "sparsight/serve/connection_threads.h"

namespace sparsight::serve {
namespace {

using HandlerResponse = httplib::Server::HandlerResponse;

constexpr std::chrono::seconds kIdle{15};  // between the requests of a connection
constexpr size_t kMaxRequests = 1000;      // of a connection
constexpr int kBacklog = 512;              // the library's own is 5
constexpr size_t kMaxPath = 1000;

// The connection that this thread serves.
struct Exchange {
  ConnectionStream* stream = nullptr;
  std::chrono::steady_clock::time_point begin;
  bool answered = false;  // by the service, so that it is counted
  bool closes = false;    // what follows is not a request, or the rest of its body was not read
};
thread_local Exchange exchange;

// Connections that are one too many. They stay open for a moment after their answer: the client would lose it where its
// request arrives at a closed connection. On the thread that accepts connections.
class RefusedConnections {
 public:
  ~RefusedConnections() {
    for (const auto& [socket, since] : open_) ::close(socket);
  }

  void add(int socket) {
    const std::string body = error_answer(503, "too many connections are open; try again later").body;
    const std::string text =
        cat("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n",
            "Connection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    [[maybe_unused]] const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(socket, SHUT_WR);
    const auto now = std::chrono::steady_clock::now();
    open_.emplace_back(socket, now);
    while (open_.size() > kMost || open_.front().second < now - kMoment) {
      ::close(open_.front().first);
      open_.pop_front();
    }
  }

 private:
  static constexpr size_t kMost = 256;
  static constexpr std::chrono::seconds kMoment{1};
  std::deque<std::pair<int, std::chrono::steady_clock::time_point>> open_;
};

void write_answer(const HttpAnswer& answer, httplib::Response& response) {
  response.status = answer.status;
  response.headers.erase("Content-Type");
  for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  response.set_content(answer.body, answer.type);
  if (exchange.closes) response.set_header("Connection", "close");
  exchange.answered = true;
}

// The Content-Length, 0 where there is none. Nothing for one that is no number, or several.
std::optional<uint64_t> body_length(const httplib::Request& request) {
  const size_t count = request.get_header_value_count("Content-Length");
  if (count == 0) return 0;
  const std::string text = request.get_header_value("Content-Length");
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (count > 1 || text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

}  // namespace

class HttpServer::Implementation : private httplib::Server {
 public:
  Implementation(Service& service, const ListenOptions& options);
  ~Implementation() override;
  int port() const { return port_; }

 private:
  bool process_and_close_socket(socket_t socket) override;
  void serve_connection(int socket);
  void bind();
  HandlerResponse before_body(const httplib::Request& request, httplib::Response& response);
  std::optional<HttpAnswer> refused_body(const httplib::Request& request) const;
  void with_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& read);
  void complete_error(const httplib::Request& request, httplib::Response& response);

  Service& service_;
  const ListenOptions options_;
  ConnectionCounts counts_;
  RefusedConnections refused_;
  int port_ = 0, listener_ = -1;
  int stop_[2] = {-1, -1};  // a pipe; the end of its first end's reading stops all connections
  std::thread thread_;
};

namespace {

HttpRequest to_request(const httplib::Request& request) {
  return {request.method,
          request.path,
          {request.params.begin(), request.params.end()},
          request.get_header_value("Authorization")};
}

}  // namespace

HttpServer::Implementation::Implementation(Service& service, const ListenOptions& options)
    : service_(service), options_(options) {
  new_task_queue = [this] { return new ConnectionThreads(options_.max_connections, counts_); };
  set_socket_options([this](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    listener_ = socket;
  });
  set_keep_alive_timeout(kIdle.count());
  set_keep_alive_max_count(kMaxRequests);
  set_pre_routing_handler([this](const auto& request, auto& response) { return before_body(request, response); });
  Post(R"([\s\S]*)", [this](const httplib::Request& request, httplib::Response& response,
                            const httplib::ContentReader& read) { with_body(request, response, read); });
  set_error_handler(httplib::Server::Handler(
      [this](const httplib::Request& request, httplib::Response& response) { complete_error(request, response); }));
  set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
    write_answer(error_answer(500, "the request could not be answered"), response);
  });
  bind();
  if (pipe2(stop_, O_CLOEXEC) != 0) fail("the server cannot start: ", std::strerror(errno));
  thread_ = background_thread([this] { listen_after_bind(); });
  if (!thread_.joinable()) fail("the system allows no more threads; raise the limit (ulimit -u) or end other programs");
  while (!is_running()) std::this_thread::yield();
}

void HttpServer::Implementation::bind() {
  errno = 0;
  if (options_.port == 0)
    port_ = bind_to_any_port(options_.host);
  else
    port_ = bind_to_port(options_.host, static_cast<int>(options_.port)) ? static_cast<int>(options_.port) : -1;
  if (port_ < 0)
    fail("cannot listen at ", printable(options_.host), ":", options_.port,
         errno != 0 ? cat(" (", std::strerror(errno), ")") : "", "; choose another --host or --port (0: any free one)");
  fcntl(listener_, F_SETFD, FD_CLOEXEC);
  ::listen(listener_, kBacklog);
}

HttpServer::Implementation::~Implementation() {
  ::close(stop_[1]);  // connections that wait for a request see it, and end
  stop();
  thread_.join();
  service_.stop();
  ::close(stop_[0]);
}

bool HttpServer::Implementation::process_and_close_socket(socket_t socket) {
  if (ConnectionThreads::is_refused()) {
    refused_.add(socket);
    return true;
  }
  try {
    serve_connection(socket);
  } catch (const std::exception& error) {  // no memory for a head, say: the others are served on
    log_warning("a connection ended: ", error.what());
  }
  ::close(socket);
  return true;
}

void HttpServer::Implementation::serve_connection(int socket) {
  const int yes = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const auto stream = std::make_unique<ConnectionStream>(socket, stop_[0]);
  bool closed = false;
  for (size_t served = 1; !closed && stream->wait_for_request(kIdle); ++served) {
    exchange = {stream.get(), std::chrono::steady_clock::now()};
    stream->begin_request(options_.timeout);
    const bool fine =
        process_request(*stream, /*close_connection=*/served == kMaxRequests, closed, [](httplib::Request& request) {
          request.ranges.clear();  // an answer is sent whole, and as it is: packing it would cost more than sending it
          request.headers.erase("Accept-Encoding");
        });
    if (exchange.closes || stream->too_much() || stream->too_slow()) stream->drain();
    closed = closed || served == kMaxRequests || !fine || exchange.closes || stream->too_much() || stream->too_slow();
  }
}

// The answer to a request whose body is not to be read.
std::optional<HttpAnswer> HttpServer::Implementation::refused_body(const httplib::Request& request) const {
  const bool chunked = request.has_header("Transfer-Encoding");
  const std::optional<uint64_t> length = body_length(request);
  if (!length || (chunked && request.has_header("Content-Length")))
    return error_answer(400, "the request has a wrong Content-Length");
  if (*length > static_cast<uint64_t>(options_.max_bytes))
    return error_answer(413, cat("the body has ", *length, " bytes; at most ", options_.max_bytes, " are taken"));
  if (request.method == "POST" && !chunked && !request.has_header("Content-Length"))
    return error_answer(411, "the request has no Content-Length; send one");
  return std::nullopt;
}

HandlerResponse HttpServer::Implementation::before_body(const httplib::Request& request, httplib::Response& response) {
  const bool has_body = request.has_header("Transfer-Encoding") || body_length(request) != uint64_t{0};
  const HttpRequest asked = to_request(request);
  std::optional<HttpAnswer> answer;
  if (request.path.size() > kMaxPath)
    answer =
        error_answer(414, cat("the address has ", request.path.size(), " bytes; at most ", kMaxPath, " are taken"));
  else
    answer = service_.answer_head(asked, {0, counts_.open, counts_.refused});
  if (!answer) answer = refused_body(request);
  if (!answer) return HandlerResponse::Unhandled;
  exchange.closes = has_body;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - exchange.begin;
  service_.metrics().add_request(service_.route_name(asked), answer->status, seconds.count());
  exchange.stream->begin_answer(options_.timeout);
  write_answer(*answer, response);
  return HandlerResponse::Handled;
}

void HttpServer::Implementation::with_body(const httplib::Request& request, httplib::Response& response,
                                           const httplib::ContentReader& read) {
  const auto max_bytes = static_cast<size_t>(options_.max_bytes);
  exchange.stream->begin_body(2 * static_cast<uint64_t>(max_bytes) + (1 << 16));  // with the marks of small chunks
  std::string body;
  body.reserve(std::min<size_t>(max_bytes, body_length(request).value_or(0)));
  bool too_large = false;
  const bool whole = read([&](const char* bytes, size_t count) {
    too_large = too_large || body.size() + count > max_bytes;
    if (!too_large) body.append(bytes, count);
    return !too_large;
  });
  exchange.closes = !whole || too_large || request.has_header("Transfer-Encoding");
  const HttpRequest asked = to_request(request);
  HttpAnswer answer;
  if (too_large || exchange.stream->too_much())
    answer = error_answer(413, cat("the body has more than ", max_bytes, " bytes; send less"));
  else if (exchange.stream->too_slow())
    answer = error_answer(408, cat("the body did not arrive within ", options_.timeout.count(), " s"));
  else if (!whole)
    answer = error_answer(400, "the body is cut short or not encoded as its head says");
  else
    answer = service_.answer_body(asked, body);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - exchange.begin;
  service_.metrics().add_request(service_.route_name(asked), answer.status, seconds.count());
  exchange.stream->begin_answer(options_.timeout);
  write_answer(answer, response);
}

// What the library answers by itself, to a head that is not HTTP: the same form as ours.
void HttpServer::Implementation::complete_error(const httplib::Request&, httplib::Response& response) {
  if (exchange.answered) return;
  const ConnectionStream& stream = *exchange.stream;
  exchange.closes = true;
  if (stream.too_much())
    write_answer(error_answer(431, "the head of the request is too large"), response);
  else if (stream.too_slow())
    write_answer(error_answer(408, "the request did not arrive in time"), response);
  else
    write_answer(error_answer(response.status, "the request is not valid HTTP"), response);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - exchange.begin;
  service_.metrics().add_request("invalid", response.status, seconds.count());
}

HttpServer::HttpServer(Service& service, const ListenOptions& options)
    : implementation_(std::make_unique<Implementation>(service, options)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return implementation_->port(); }

}  // namespace sparsight::serve
