#include "sparsight/core/checksum.h"

#define XXH_INLINE_ALL  // no library, only its header
#include <xxhash.h>

#include <cstdio>

namespace sparsight {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum& Checksum::operator=(Checksum&&) noexcept = default;

void Checksum::update(const void* data, size_t bytes) { XXH3_64bits_update(&state_->xxh3, data, bytes); }

std::string Checksum::hex() const {
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(&state_->xxh3)));
  return digits;
}

std::string compute_checksum(std::string_view bytes) {
  Checksum checksum;
  checksum.update(bytes.data(), bytes.size());
  return checksum.hex();
}

}  // namespace sparsight
