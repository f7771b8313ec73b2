// JSON objects with a checksum of their own text: files of one object (.json), and lines of one object each (.jsonl). A
// digit that a disk or a copy changed would otherwise be another result.
//
// The last member is "xxh3": XXH3 (64 bits, 16 hexadecimal digits) of all bytes of the text before the comma in front
// of it. A program that changes such a text leaves the member out: texts without it are read as they are.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sparsight/core/json_text.h"
#include "sparsight/core/options.h"

namespace sparsight {

inline constexpr const char* kChecksumMember = "xxh3";

// The text of an object with members, its checksum last; valid UTF-8 as of json_text(). indent: spaces, or -1 for one
// line. Without a newline at the end.
std::string checked_json(const Json& object, int indent = -1);
// The same as a file and as a line of one.
std::string checked_json_file(const Json& object);
std::string checked_json_line(const Json& object);

// The object of `text`, without its checksum. Raises Error that starts with `what` for what parse_json_object() refuses
// and for a text that its checksum is not of.
Json parse_checked_object(std::string_view text, const std::string& what, const JsonLimits& limits = {});

// The same where damage is expected. Nothing for a damaged text, whose `problem` is then "is not a JSON object" or
// "does not match its checksum".
std::optional<Json> try_parse_checked_object(std::string_view text, std::string& problem,
                                             const JsonLimits& limits = {});

}  // namespace sparsight
