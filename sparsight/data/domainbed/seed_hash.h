// DomainBed's seeds: a hash of what a run is of, as Python prints it.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace sparsight {

// str(tuple(values)): "(0, 'lr')", "('PACS', 'GMOE', [0], 0, 0)", "(0,)". values: an array of integers, strings without
// quotes or control characters, and lists of these.
std::string python_tuple(const nlohmann::ordered_json& values);

// The MD5 of python_tuple(values) modulo 2^31.
uint32_t seed_hash(const nlohmann::ordered_json& values);

}  // namespace sparsight
