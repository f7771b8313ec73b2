// Messages in the wire format of Protocol Buffers, which ONNX files are made of. It is written here because these lines
// are all that writing takes, and a library would be one more package for everyone who builds the engine.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace sparsight::engine {

// The fields of a message, in the order in which they were added.
class ProtoMessage {
 public:
  void number(uint32_t field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
  }
  void real(uint32_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<char>(bits >> shift & 0xff));
  }
  void text(uint32_t field, std::string_view value) {
    length(field, value.size());
    bytes_ += value;
  }
  void message(uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }
  // The start of a field whose `count` bytes follow.
  void length(uint32_t field, uint64_t count) {
    varint(field << 3 | 2);
    varint(count);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  // Seven bits at a time, the lowest first.
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace sparsight::engine
