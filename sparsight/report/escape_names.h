// Foreign text as a part of a page: names of algorithms and environments may hold any characters.
#pragma once

#include <string>

namespace sparsight {

// One line that a terminal shows as it is.
std::string plain_text(const std::string& text);
// One line of Markdown, also in a cell of a table: no link, emphasis, code or HTML comes of it.
std::string markdown_text(const std::string& text);
// One line of LaTeX, also in a cell of a tabular; "+/-" becomes the sign. Characters beyond ASCII need a document in
// UTF-8, as LaTeX expects since 2018.
std::string latex_text(const std::string& text);

}  // namespace sparsight
