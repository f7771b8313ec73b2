// Small files for the tests of the readers, made byte by byte.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/bytes.h"
#include "tests/support/paths.h"

namespace sparsight::testing {

inline Bytes to_bytes(const std::string& text) { return Bytes(text.begin(), text.end()); }

inline std::string golden_image(const std::string& name) {
  std::ifstream file(test::source_path("tests/golden/images/" + name), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// An idx file of bytes: magic, sizes big-endian, values.
inline std::string idx_file(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  return file + values;
}

inline std::string npy_file(const std::string& header, const std::string& values, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, '\0', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  if (version > 1) file += {'\0', '\0'};
  return file + header + values;
}

inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A PNG file that claims any size; its pixels are those of `rows`, zeros that compress to almost nothing.
inline std::string png_file(uint32_t width, uint32_t height, uint8_t depth, uint8_t colour, const std::string& rows) {
  const auto number = [](uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
                       static_cast<char>(value)};
  };
  const auto chunk = [&](const std::string& body) {  // kind and data
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    return number(static_cast<uint32_t>(body.size() - 4)) + body + number(static_cast<uint32_t>(crc));
  };
  std::string packed(compressBound(rows.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  packed.resize(size);
  const std::string head = "IHDR" + number(width) + number(height) +
                           std::string{static_cast<char>(depth), static_cast<char>(colour), 0, 0, 0};
  return "\x89PNG\r\n\x1A\n" + chunk(head) + chunk("IDAT" + packed) + chunk("IEND");
}

// The error message of `work`; "" if there is none.
template <class Work>
std::string complaint(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Whether `message` contains `part`: EXPECT_TRUE(says(complaint(...), "cut off")).
inline ::testing::AssertionResult says(const std::string& message, const std::string& part) {
  return ::testing::IsSubstring("part", "message", part, message);
}

}  // namespace sparsight::testing
