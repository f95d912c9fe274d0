// Text in columns: a block of bytes in, where each cell begins and ends out.
//
//   word POS label      a row: cells between separators, as many in every row
//   word POS label
//                       a line of nothing but spaces and tabs ends the sequence
//
// The separator is one byte, and then a cell may be empty; or any run of spaces and tabs (-1).
// Lines end with LF or CRLF. Text is UTF-8, and checked to be.
//
// Notes are lines that are no rows: comments and document marks. A row may begin with the very same
// bytes ("# # B-NP" in CoNLL-2000, "#<tab>SYM" in the English treebank), so a line that begins with
// the comment mark is a comment only
//   - if it has no separator, and is no row for that reason (of one column: at a sequence's start);
//   - if cells are separated by any run of blanks: at a sequence's start, too.
// A line whose first cell is the document mark ends the sequence and is no row.
//
// A block may end anywhere. What follows the last finished sequence is left to the next block, unless
// this one is the last; `consumed` says where that is.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "binding.hpp"
#include "hashing.hpp"
#include "text_check.hpp"

namespace chordal {
namespace {

using std::size_t;

struct Problem {
    std::int64_t line, column;  // from 1, in this block; the column in bytes
    std::string what;
};

struct Rules {
    int separator;  // -1: any run of spaces and tabs
    std::string_view comment, document;  // empty: none
};

class ColumnReader {
public:
    ColumnReader(std::string_view text, const Rules& rules, std::int64_t n_columns)
        : n_columns(n_columns), text_(text), rules_(rules) {}

    void read(bool at_end) {
        const size_t last = at_end ? text_.size() : text_.rfind('\n') + 1;  // npos + 1 is 0
        check_bytes(last);
        cells.reserve(last / 2);  // a cell with its separator has some four bytes or more
        lines.reserve(last / 8);
        size_t begin = 0;
        while (begin < last && !problem) {
            size_t end = text_.find('\n', begin);
            const size_t next = end == text_.npos ? text_.size() : end + 1;
            end = end == text_.npos ? text_.size() : end;
            if (end > begin && text_[end - 1] == '\r') --end;
            line(begin, end, next);
            begin = next;
            ++line_;
        }
        if (at_end) finish(text_.size(), line_);
    }

    std::vector<std::uint32_t> cells;  // [rows * columns * 2]
    std::int64_t n_columns;            // 0 until a row is met
    std::vector<std::int64_t> lengths, lines, notes;  // notes: (sequence, begin, end) each
    size_t consumed = 0;
    std::int64_t consumed_lines = 0;
    std::optional<Problem> problem;

private:
    static bool blank(char c) { return c == ' ' || c == '\t'; }
    bool separates(char c) const {
        return rules_.separator < 0 ? blank(c) : c == static_cast<char>(rules_.separator);
    }

    void line(size_t begin, size_t end, size_t next) {
        size_t first = begin;
        while (first < end && blank(text_[first])) ++first;
        if (first == end) {
            const bool between = length_ == 0;
            if (!between) finish(next, line_ + 1);
            if (between && !waiting_notes()) consume(next, line_ + 1);
        } else if (is_document(begin, end)) {
            finish(begin, line_);
            note(begin, end);
        } else if (is_comment(begin, end)) {
            note(begin, end);
        } else {
            row(begin, end);
        }
    }

    bool begins_with(size_t begin, size_t end, std::string_view mark) const {
        return !mark.empty() && end - begin >= mark.size() &&
               text_.compare(begin, mark.size(), mark) == 0;
    }
    bool is_document(size_t begin, size_t end) const {
        if (!begins_with(begin, end, rules_.document)) return false;
        const size_t after = begin + rules_.document.size();
        return after == end || blank(text_[after]) || separates(text_[after]);
    }
    bool is_comment(size_t begin, size_t end) const {
        if (!begins_with(begin, end, rules_.comment)) return false;
        if (rules_.separator < 0)
            while (blank(text_[end - 1])) --end;
        for (size_t i = begin; i < end; ++i)
            if (separates(text_[i])) return rules_.separator < 0 && length_ == 0;
        return n_columns != 1 || length_ == 0;
    }

    void row(size_t begin, size_t end) {
        const size_t before = cells.size();
        size_t i = begin;
        if (rules_.separator < 0) {
            for (;;) {
                while (i < end && blank(text_[i])) ++i;
                if (i == end) break;
                const size_t start = i;
                while (i < end && !blank(text_[i])) ++i;
                cell(start, i);
            }
        } else {
            for (;; ++i) {
                const size_t start = i;
                while (i < end && text_[i] != static_cast<char>(rules_.separator)) ++i;
                cell(start, i);
                if (i == end) break;
            }
        }
        const auto found = static_cast<std::int64_t>((cells.size() - before) / 2);
        if (n_columns == 0) n_columns = found;
        if (found != n_columns) {
            const size_t at =
                found < n_columns ? end : cells[before + 2 * static_cast<size_t>(n_columns)];
            std::string what = "expected ";
            what += std::to_string(n_columns);
            what += n_columns == 1 ? " column" : " columns";
            what += " as in the first row, found ";
            what += std::to_string(found) + ": " + excerpt(begin, end);
            return refuse(at, begin, std::move(what));
        }
        lines.push_back(line_);
        ++length_;
    }
    void cell(size_t begin, size_t end) {
        cells.push_back(static_cast<std::uint32_t>(begin));
        cells.push_back(static_cast<std::uint32_t>(end));
    }
    void note(size_t begin, size_t end) {
        notes.push_back(static_cast<std::int64_t>(lengths.size()));
        notes.push_back(static_cast<std::int64_t>(begin));
        notes.push_back(static_cast<std::int64_t>(end));
    }
    // Notes that belong to a sequence not begun: they stay with it, in the next block if need be.
    bool waiting_notes() const {
        return !notes.empty() &&
               notes[notes.size() - 3] == static_cast<std::int64_t>(lengths.size());
    }
    void consume(size_t end, std::int64_t line) {
        consumed = end;
        consumed_lines = line;
    }
    void finish(size_t end, std::int64_t line) {
        if (length_ == 0) return;
        lengths.push_back(length_);
        length_ = 0;
        consume(end, line);
    }

    void check_bytes(size_t size) {
        const size_t at = find_bad_byte(text_.substr(0, size));
        if (at == text_.npos) return;
        line_ = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
        refuse(at, text_.rfind('\n', at) + 1,  // npos + 1 is 0
               text_[at] == 0      ? "a NUL byte, which text does not hold; convert the file to UTF-8"
               : text_[at] == '\r' ? "a carriage return inside a line; end lines with LF or CRLF"
                                   : "not UTF-8; convert the file to UTF-8");
    }
    void refuse(size_t at, size_t line_begin, std::string what) {
        problem = Problem{line_ + 1, static_cast<std::int64_t>(at - line_begin) + 1, std::move(what)};
    }
    std::string excerpt(size_t begin, size_t end) const {
        constexpr size_t kMost = 60;
        if (end - begin <= kMost) return std::string(text_.substr(begin, end - begin));
        end = begin + kMost;
        while (end > begin && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) --end;
        return std::string(text_.substr(begin, end - begin)) + "…";
    }

    const std::string_view text_;
    const Rules rules_;
    std::int64_t line_ = 0, length_ = 0;  // lines before this one, rows of the open sequence
};

std::string_view view_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "columns_read",
        [](nb::bytes text, int separator, std::optional<nb::bytes> comment,
           std::optional<nb::bytes> document, std::int64_t n_columns, bool at_end) {
            if (text.size() > 0xFFFFFFFFull)
                throw nb::value_error("a block of text must be smaller than 4 GiB");
            const Rules rules{separator, comment ? view_of(*comment) : std::string_view(),
                              document ? view_of(*document) : std::string_view()};
            ColumnReader reader(view_of(text), rules, n_columns);
            {
                GilReleased release;
                reader.read(at_end);
                // Rows of a sequence that goes on in the next block are read again there.
                std::int64_t n_rows = 0;
                for (const std::int64_t length : reader.lengths) n_rows += length;
                reader.lines.resize(static_cast<size_t>(n_rows));
                reader.cells.resize(static_cast<size_t>(2 * n_rows * reader.n_columns));
                if (reader.cells.capacity() > reader.cells.size() + reader.cells.size() / 2)
                    reader.cells.shrink_to_fit();
            }
            std::optional<std::tuple<std::int64_t, std::int64_t, std::string>> problem;
            if (reader.problem)
                problem.emplace(reader.problem->line, reader.problem->column, reader.problem->what);
            return std::make_tuple(array_of(std::move(reader.cells)), reader.n_columns,
                                   array_of(std::move(reader.lengths)),
                                   array_of(std::move(reader.lines)),
                                   array_of(std::move(reader.notes)), reader.consumed,
                                   reader.consumed_lines, problem);
        },
        nb::arg("text"), nb::arg("separator"), nb::arg("comment").none(),
        nb::arg("document").none(), nb::arg("n_columns"), nb::arg("at_end"),
        "Begin and end of every cell, the number of columns, lengths of sequences, each row's line "
        "(from 0), notes (sequence, begin, end), bytes and lines consumed, and None or what is wrong: "
        "(line, column, message), both from 1.");
    m.def(
        "columns_join",
        [](nb::bytes text, Input<std::uint32_t> cells, std::int64_t n_columns,
           Input<std::int64_t> lengths, char separator, nb::bytes names,
           Input<std::int64_t> name_offsets, Input<std::int32_t> codes) {
            const std::string_view all = view_of(text), last = view_of(names);
            std::string out;
            {
                GilReleased release;
                const auto* cell = cells.data();
                size_t t = 0;
                for (size_t i = 0; i < lengths.size(); ++i) {
                    for (std::int64_t k = 0; k < lengths.data()[i]; ++k, ++t) {
                        for (std::int64_t c = 0; c < n_columns; ++c, cell += 2) {
                            if (c > 0) out.push_back(separator);
                            out.append(all, cell[0], cell[1] - cell[0]);
                        }
                        if (codes.size() > 0) {
                            const std::int64_t* at = name_offsets.data() + codes.data()[t];
                            if (n_columns > 0) out.push_back(separator);
                            out.append(last, static_cast<size_t>(at[0]),
                                       static_cast<size_t>(at[1] - at[0]));
                        }
                        out.push_back('\n');
                    }
                    out.push_back('\n');
                }
            }
            return nb::bytes(out.data(), out.size());
        },
        nb::arg("text"), nb::arg("cells"), nb::arg("n_columns"), nb::kw_only(), nb::arg("lengths"),
        nb::arg("separator"), nb::arg("names"), nb::arg("name_offsets"), nb::arg("codes"),
        "The inverse of columns_read, with one of the names, by its code, at the end of each row "
        "unless there are no codes.");
    m.def(
        "columns_codes",
        [](nb::bytes text, Input<std::uint32_t> cells) {
            // Distinct cells are numbered in the order of first appearance.
            const std::string_view all = view_of(text);
            std::vector<std::int32_t> codes(cells.size() / 2);
            std::vector<std::int64_t> first;
            {
                GilReleased release;
                std::unordered_map<std::string_view, std::int32_t, KeyedHash> known;
                for (size_t i = 0; i < codes.size(); ++i) {
                    const size_t begin = cells.data()[2 * i], end = cells.data()[2 * i + 1];
                    if (begin > end || end > all.size())
                        throw nb::value_error("a cell lies outside of the text");
                    const auto [place, is_new] = known.try_emplace(
                        all.substr(begin, end - begin), static_cast<std::int32_t>(first.size()));
                    if (is_new) first.push_back(static_cast<std::int64_t>(i));
                    codes[i] = place->second;
                }
            }
            return std::make_tuple(array_of(std::move(codes)), array_of(std::move(first)));
        },
        nb::arg("text"), nb::arg("cells"),
        "A number for each cell, equal where the text is; and the first cell with each number.");
});

}  // namespace chordal
