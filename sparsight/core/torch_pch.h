// The torch headers that module code shares, precompiled once. Kernels, data and core code never include this.
#pragma once
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
