// JSON text to values. Every JSON text that somebody else may have written is read here: within limits, in linear time.
//
// The JSON library alone builds values of any depth, whose copies and output then overflow the stack, and looks each
// new key of an ordered object up among all earlier ones.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sparsight/core/limits.h"
#include "sparsight/core/options.h"

namespace sparsight {

struct JsonLimits {
  size_t depth = kMaxJsonDepth;  // of arrays and objects in one another
  size_t keys = kMaxJsonKeys;    // of one object
  size_t values = kMaxJsonValues;
};

// The value of `text`. Raises Error that starts with `what` ("runs/a/env.json is not JSON (byte 17)") for what is no
// JSON, has a key twice in one object (two readers would see different values) or exceeds the limits.
Json parse_json(std::string_view text, const std::string& what, const JsonLimits& limits = {});

// The same for an object; anything else raises Error too.
Json parse_json_object(std::string_view text, const std::string& what, const JsonLimits& limits = {});

// The same where a damaged text is no error: nothing, unless it is an object.
std::optional<Json> try_parse_json_object(std::string_view text, const JsonLimits& limits = {});

// Calls take(name, value) for each member of the object `text`, and never holds more than one of them. The object
// itself may have any number of keys; limits.keys and limits.values are those of one member.
void for_each_member(std::string_view text, const std::string& what, const JsonLimits& limits,
                     const std::function<void(const std::string& name, const Json& value)>& take);

// About how many bytes of memory `value` takes.
size_t json_memory(const Json& value);

}  // namespace sparsight
