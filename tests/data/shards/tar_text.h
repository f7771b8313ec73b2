// Tar archives as text, also such as no program would write.
#pragma once

#include <cstdio>
#include <string>

namespace sparsight::testing {

// One entry of a ustar archive, written field by field (IEEE Std 1003.1, ustar Interchange Format).
inline std::string tar_entry(const std::string& name, const std::string& body, char type = '0') {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  char size[12];
  std::snprintf(size, sizeof size, "%011zo", body.size());
  put(0, name);
  put(100, "0000644");
  put(124, size);
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  unsigned sum = 0;
  for (const unsigned char c : header) sum += c;
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  put(148, checksum);
  return header + body + std::string((512 - body.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

// The same with another text in its header at byte `at`, such as 124 for the size; its checksum is right.
inline std::string with_field(std::string entry, size_t at, const std::string& text) {
  entry.replace(at, text.size(), text);
  entry.replace(148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(entry[i]);
  char checksum[8];
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  return entry.replace(148, 7, checksum, 7);
}

// A pax header with one record.
inline std::string pax_entry(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return tar_entry("x", std::to_string(length) + " " + key + "=" + value + "\n", 'x');
}

}  // namespace sparsight::testing
