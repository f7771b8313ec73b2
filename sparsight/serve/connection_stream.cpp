#include "sparsight/serve/connection_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sparsight::serve {
namespace {

constexpr std::chrono::milliseconds kStopGrace{2000};

int milliseconds_until(ConnectionStream::Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - ConnectionStream::Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

}  // namespace

ConnectionStream::ConnectionStream(int socket, int stop) : socket_(socket), stop_(stop) {}

bool ConnectionStream::wait_for_request(std::chrono::milliseconds idle) {
  if (begin_ < end_) return true;
  deadline_ = Clock::now() + idle;
  pollfd watched[] = {{socket_, POLLIN, 0}, {stop_, POLLIN, 0}};
  int ready = 0;
  do ready = poll(watched, 2, milliseconds_until(deadline_));
  while (ready < 0 && errno == EINTR);
  return ready > 0 && watched[0].revents != 0 && watched[1].revents == 0;
}

void ConnectionStream::begin_request(std::chrono::milliseconds timeout) {
  deadline_ = Clock::now() + timeout;
  in_head_ = true;
  left_ = kMaxHead;
  line_ = 0;
}

void ConnectionStream::begin_body(uint64_t max_bytes) {
  in_head_ = false;
  left_ = max_bytes;
}

// Whether the socket is ready for `events` before the deadline, which a stop of the server brings nearer.
bool ConnectionStream::wait_for(short events) {
  for (;;) {
    pollfd watched[] = {{socket_, events, 0}, {stopping_ ? -1 : stop_, POLLIN, 0}};
    const int ready = poll(watched, 2, milliseconds_until(deadline_));
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0 && watched[1].revents != 0) {
      stopping_ = true;
      if ((events & POLLIN) != 0) deadline_ = std::min(deadline_, Clock::now() + kStopGrace);
    }
    if (ready > 0 && watched[0].revents != 0) return true;
    if (ready <= 0) {
      too_slow_ = true;
      return false;
    }
  }
}

bool ConnectionStream::fill() {
  for (;;) {
    if (Clock::now() >= deadline_) {
      too_slow_ = true;
      return false;
    }
    if (!wait_for(POLLIN)) return false;
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    begin_ = 0, end_ = static_cast<size_t>(got);
    return true;
  }
}

bool ConnectionStream::take_from_line(char byte) {
  line_ = byte == '\n' ? 0 : line_ + 1;
  return line_ <= kMaxLine;
}

ssize_t ConnectionStream::read(char* bytes, size_t size) {
  if (begin_ == end_ && !fill()) return -1;
  const size_t count = std::min(size, end_ - begin_);
  too_much_ = too_much_ || count > left_ || (in_head_ && !take_from_line(buffer_[begin_]));  // a head is read bytewise
  if (too_much_) return -1;
  std::memcpy(bytes, buffer_.data() + begin_, count);
  begin_ += count;
  left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t ConnectionStream::write(const char* bytes, size_t size) {
  for (;;) {
    const ssize_t sent = send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || Clock::now() >= deadline_ || !wait_for(POLLOUT)) return -1;
  }
}

void ConnectionStream::drain() {
  constexpr std::chrono::milliseconds kPatience{1000};
  constexpr int64_t kMaxDrained = int64_t{64} << 20;
  shutdown(socket_, SHUT_WR);
  deadline_ = Clock::now() + kPatience;
  for (int64_t drained = 0; drained < kMaxDrained && fill();) drained += static_cast<int64_t>(end_);
  begin_ = end_ = 0;
}

void ConnectionStream::get_remote_ip_and_port(std::string& ip, int& port) const { ip.clear(), port = 0; }
void ConnectionStream::get_local_ip_and_port(std::string& ip, int& port) const { ip.clear(), port = 0; }

}  // namespace sparsight::serve
