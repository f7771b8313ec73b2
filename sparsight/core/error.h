// The two kinds of error: the user's (Error) and ours (SPARSIGHT_CHECK, an internal check).
// An Error's message is one line that says what was got, what is allowed and what to do.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace sparsight {

// What a mistake of the user raises. The program prints the message and exits with `exit_code()`.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  virtual int exit_code() const { return 1; }  // 1: the work failed
};

// A wrong command line or configuration.
class UsageError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 2; }
};

// Joins values into one string: cat("got ", 3, " rows").
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(cat(parts...));
}

template <class... Parts>
[[noreturn]] void fail_usage(const Parts&... parts) {
  throw UsageError(cat(parts...));
}

}  // namespace sparsight

// An internal invariant: a failure is a bug in Sparsight, not a mistake of the user.
#define SPARSIGHT_CHECK(condition)                                                                   \
  do {                                                                                               \
    if (!(condition))                                                                                \
      throw std::logic_error(                                                                        \
          ::sparsight::cat("internal check failed: ", #condition, " at ", __FILE__, ":", __LINE__)); \
  } while (false)
