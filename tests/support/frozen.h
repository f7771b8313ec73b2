// Frozen models in memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sparsight/engine/file/frozen_file.h"

namespace sparsight::test {

inline std::string frozen_bytes(const engine::Program& program, const Json& provenance = {{"run", "test"}}) {
  std::string bytes;
  engine::write_program(program, provenance,
                        [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  return bytes;
}

inline ByteView byte_view(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// bytes: stay there for a program that reads experts later.
inline engine::Program read_frozen(const std::string& bytes, engine::ExpertMemory memory = {}) {
  const std::shared_ptr<const engine::ByteSource> source = engine::bytes_in_memory(byte_view(bytes), "test.sparsight");
  return engine::read_program(source, engine::read_header(*source), memory);
}

}  // namespace sparsight::test
