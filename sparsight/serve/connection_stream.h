// One client's connection, as the HTTP library reads and writes it: with a deadline for a whole request, however slowly
// its bytes come, and a limit on what it sends.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include <httplib.h>

namespace sparsight::serve {

class ConnectionStream final : public httplib::Stream {
 public:
  using Clock = std::chrono::steady_clock;

  // socket, stop: file descriptors of the caller. `stop` becomes readable when the server ends: a request that is being
  // read then gets two seconds to arrive.
  ConnectionStream(int socket, int stop);

  // Whether a request begins within that time, and before the server stops.
  bool wait_for_request(std::chrono::milliseconds idle);
  // A request begins: all of it comes within `timeout`, its head in at most kMaxHead bytes and lines of kMaxLine.
  void begin_request(std::chrono::milliseconds timeout);
  // The head has been read; the body and what surrounds its chunks may have so many bytes.
  void begin_body(uint64_t max_bytes);
  // An answer begins: all of it goes out within `timeout`.
  void begin_answer(std::chrono::milliseconds timeout) { deadline_ = Clock::now() + timeout; }
  // The bytes or the time of the request were used up, and not by its client's end of the connection.
  bool too_much() const { return too_much_; }
  bool too_slow() const { return too_slow_; }
  // Reads and drops what the client still sends, for a while, so that it reads the answer before the connection ends.
  void drain();

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return 0; }  // only compared with FD_SETSIZE, which poll() does not know

 private:
  static constexpr uint64_t kMaxHead = 32 << 10, kMaxLine = 6 << 10;

  bool fill();
  bool wait_for(short events);
  bool take_from_line(char byte);

  int socket_, stop_;
  bool stopping_ = false, in_head_ = true, too_much_ = false, too_slow_ = false;
  Clock::time_point deadline_{};
  uint64_t left_ = 0, line_ = 0;
  std::array<char, 16 << 10> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace sparsight::serve
