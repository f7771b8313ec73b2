// Domain generalisation measured by the protocol of DomainBed (Gulrajani and Lopez-Paz 2021), on data and at lengths
// that a CPU can do. The paper's own tables, of pretrained models, are those of `sparsight dg sweep`.
#pragma once

#include "sparsight/reproduce/figure.h"

namespace sparsight::gmoe {

Figure rotated_mnist_figure();    // gmoe/rotated_mnist: ERM beside its published average
Figure colored_mnist_figure();    // gmoe/colored_mnist: the same where the colour misleads
Figure router_ablation_figure();  // gmoe/ablation: routers and placements of GMoE on generated domains
Figure pacs_figure();             // gmoe/pacs: GMoE and a dense ViT, from scratch

}  // namespace sparsight::gmoe
