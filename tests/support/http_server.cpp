#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace sparsight::testing {
namespace {

// False where the client has hung up.
bool send_all(int connection, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t sent = send(connection, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

// The head of a request, up to the empty line.
std::string receive_head(int connection) {
  std::string head;
  char buffer[4096];
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return "";
    head.append(buffer, static_cast<size_t>(got));
  }
  return head;
}

std::string between(const std::string& text, const std::string& left, const std::string& right) {
  const size_t begin = text.find(left);
  if (begin == std::string::npos) return "";
  return text.substr(begin + left.size(), text.find(right, begin + left.size()) - begin - left.size());
}

}  // namespace

HttpServer::HttpServer() {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (socket_ < 0 || bind(socket_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(socket_, 16) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("cannot listen on localhost");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  thread_.join();
  close(socket_);
}

void HttpServer::answer(const std::string& path, std::vector<HttpResponse> responses) {
  const std::lock_guard lock(mutex_);
  responses_[path] = std::move(responses);
}

std::string HttpServer::address(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<std::string> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::serve() {
  while (!stop_) {
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, 20) <= 0) continue;
    const int connection = accept(socket_, nullptr, nullptr);
    if (connection < 0) continue;
    serve_one(connection);
    shutdown(connection, SHUT_RDWR);
    close(connection);
  }
}

void HttpServer::serve_one(int connection) {
  const std::string head = receive_head(connection);
  const std::string path = between(head, "GET ", " "), range = between(head, "Range: bytes=", "\r\n");
  HttpResponse answer{"not here", 404};
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(path + (range.empty() ? "" : " " + range));
    if (const auto found = responses_.find(path); found != responses_.end()) {
      answer = found->second.front();
      if (found->second.size() > 1) found->second.erase(found->second.begin());
    }
  }
  std::string headers;
  if (!answer.location.empty()) headers = "Location: " + answer.location + "\r\n";
  if (answer.status == 200 && answer.ranges && !range.empty()) {
    const size_t start = std::stoul(range) + answer.range_shift, size = answer.body.size();
    const std::string last = range.substr(range.find('-') + 1);
    const size_t end = last.empty() ? size : std::min(size, std::stoul(last) + 1 + answer.range_shift);
    answer.status = start >= size ? 416 : 206;
    if (start < size)
      headers += "Content-Range: bytes " + std::to_string(start) + "-" + std::to_string(end - 1) + "/" +
                 std::to_string(size) + "\r\n";
    answer.body = start >= size ? "" : answer.body.substr(start, end - start);
  }
  if (!answer.endless.empty()) {
    const std::string piece = answer.endless == "headers" ? "X-More: " + answer.body + "\r\n" : answer.body;
    send_all(connection, "HTTP/1.1 200 x\r\nConnection: close\r\n" + headers + (piece == answer.body ? "\r\n" : ""));
    while (!stop_ && send_all(connection, piece))
      std::this_thread::sleep_for(std::chrono::duration<double>(answer.pause_seconds));
    return;
  }
  send_all(connection, "HTTP/1.1 " + std::to_string(answer.status) + " x\r\nContent-Length: " +
                           std::to_string(answer.body.size()) + "\r\nConnection: close\r\n" + headers + "\r\n");
  send_all(connection,
           answer.cut_after < 0 ? answer.body : answer.body.substr(0, static_cast<size_t>(answer.cut_after)));
}

}  // namespace sparsight::testing
