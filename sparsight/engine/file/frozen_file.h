// A frozen model: a program in one file, with everything needed to use it, and no torch. Layout and what is checked:
// docs/file_formats.md, "Frozen models".
#pragma once

#include <string>

#include "sparsight/engine/file/frozen_header.h"
#include "sparsight/engine/program.h"

namespace sparsight::engine {

// Passes the file's bytes to write(), from the first to the last. provenance: an object that says what the model was
// made of.
void write_program(const Program& program, const Json& provenance, FunctionRef<void(const void*, size_t)> write);

// The program, with the same bits as when it was written, at the active level of kernels/isa/isa.h. Raises Error for
// what read_header() refuses, for tensors that do not have their checksums, and for steps that would not run.
// memory: experts that are MLPs of two layers may be read when an image chooses them, with the same bits; `file` stays
// open for them. Their tensors are verified then.
// packed_beside: the path of the file, to keep packed weights beside it (pack_cache.h), with the same bits; "":
// nowhere. Matrices that are there already are not read from the file.
Program read_program(std::shared_ptr<const ByteSource> file, const FrozenHeader& header, ExpertMemory memory = {},
                     const std::string& packed_beside = "");
Program read_program(const std::string& path, ExpertMemory memory = {});

}  // namespace sparsight::engine
