// XXH3 checksums of tensors and headers: they detect damage, but do not authenticate a file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace sparsight {

inline constexpr size_t kChecksumDigits = 16;  // 64 bits in hexadecimal

// The checksum of bytes added piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(Checksum&&) noexcept;
  Checksum& operator=(Checksum&&) noexcept;

  void update(const void* data, size_t bytes);
  std::string hex() const;  // [kChecksumDigits]

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string compute_checksum(std::string_view bytes);

}  // namespace sparsight
