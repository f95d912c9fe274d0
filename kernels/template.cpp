// Feature templates: columns of text in, attribute ids out, without a Python object per token.
//
// A line of a template gives each position an attribute (template_lines.hpp). Most of what text
// holds was met before, so names are made and looked up once (template_memo.hpp): per position
// there are a step in a table for each column and each shape of lines, and a number for each line.
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <tuple>

#include "template_lines.hpp"
#include "template_memo.hpp"

namespace chordal {
namespace {

// Positions of a sequence that are read together.
struct Window {
    const Sequence& x;
    std::int64_t begin, end;
};

// A column that lines look at: the numbers of its cells.
class Column {
public:
    static constexpr std::int64_t kNear = 16;  // rows around a window

    explicit Column(std::size_t number) : number(number) {}

    const std::size_t number;  // among the columns of the text
    std::size_t lines = 0;     // that look at a single cell

    void clear() {
        table_.clear();
        for (auto& side : outside_) side.assign(kNear + 1, kNone);
    }
    void fill(const Window& w, MemoValues& values) {
        first_ = std::max<std::int64_t>(0, w.begin - kNear);
        const std::int64_t end = std::min(w.x.length, w.end + kNear);
        cells_.resize(static_cast<std::size_t>(end - first_));
        for (std::int64_t row = first_; row < end; ++row)
            cells_[static_cast<std::size_t>(row - first_)] = find(w.x, row, values);
    }
    // The cell in a row, wherever that is.
    std::uint32_t at(const Sequence& x, std::int64_t row, bool wapiti, MemoValues& values) {
        const auto k = static_cast<std::size_t>(row - first_);  // huge if below
        if (k < cells_.size()) return cells_[k];
        if (x.holds(row)) return find(x, row, values);
        const std::int64_t distance = row < 0 ? -row : row - x.length + 1;
        if (distance > kNear) return table_.find(x.outside(row, wapiti), lines, values);
        std::uint32_t& known = outside_[row < 0][static_cast<std::size_t>(distance)];
        if (known == kNone) known = table_.find(x.outside(row, wapiti), lines, values);
        return known;
    }

private:
    static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

    std::uint32_t find(const Sequence& x, std::int64_t row, MemoValues& values) {
        return table_.find(x.cell(row, number), lines, values);
    }

    CellTable table_;
    std::int64_t first_ = 0;
    std::vector<std::uint32_t> cells_;        // of rows first_ ..
    std::vector<std::uint32_t> outside_[2];   // after and before the sequence, by distance
};

// Cells that lines look at, relative to a place s: those of a parent, and one more.
struct Shape {
    std::size_t parent, column;
    bool absolute;
    std::int64_t offset;  // of its own cell: from s, or as the template has it
    std::size_t lines = 0;
    std::int64_t low = std::numeric_limits<std::int64_t>::max(),
                 high = std::numeric_limits<std::int64_t>::min();  // s - t
    TupleTable table = {};
    std::vector<std::uint32_t> tuples = {};  // of s = t + low ..

    bool is_cell() const { return parent == 0 && !absolute && offset == 0; }
    void reach(std::int64_t from, std::int64_t to) {
        low = std::min(low, from);
        high = std::max(high, to);
    }
};

class TemplateReader {
public:
    TemplateReader(std::unique_ptr<Lines> lines, bool wapiti, std::int64_t begin,
                   Vocabulary& vocabulary)
        : lines_(std::move(lines)), wapiti_(wapiti), begin_(begin), vocabulary_(vocabulary) {
        shapes_.push_back({0, 0, false, 0});  // of no cells
        shapes_[0].reach(0, 0);
        for (std::size_t line = 0; line < lines_->size(); ++line) place((*lines_)[line]);
        for (std::size_t k = shapes_.size(); k-- > 1;) {
            const Shape& shape = shapes_[k];
            shapes_[shape.parent].reach(shape.low, shape.high);
            if (shape.is_cell()) columns_[shape.column].lines = shape.lines;
        }
        forget();
    }

    // Sequences, the first of which begins at x.first; false if the user wants to stop.
    bool read(Sequence x, const std::int64_t* lengths, std::size_t n, bool grow) {
        if (grow || vocabulary_.size() != known_) forget();
        std::size_t work = 0;
        for (std::size_t k = 0; k < n; ++k, x.first += x.length) {
            x.length = lengths[k];
            for (std::int64_t t = begin_; t < x.length; t += kWindow) {
                if (values_.size() > (grow ? kMost : kKept)) {
                    look_up(grow);
                    forget();
                }
                add({x, t, std::min(t + kWindow, x.length)}, grow);
                if (++work % 256 == 0 && interrupted()) return false;
            }
        }
        look_up(grow);
        known_ = vocabulary_.size();
        return true;
    }

    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> row_offsets;

private:
    static constexpr std::int64_t kWindow = 256;    // positions at a time
    static constexpr std::size_t kRows = 512;       // that wait at most
    static constexpr std::size_t kTogether = 256;   // names that wait at most
    static constexpr std::size_t kMost = 1u << 22;  // values that are remembered
    static constexpr std::size_t kKept = 1u << 20;  // by a reader that stays, as in a server

    struct Place {
        std::size_t shape;
        std::int64_t shift;
        std::uint32_t number;
        const std::uint32_t* tuples = nullptr;  // of the window's positions
    };

    // A line's place among the shapes.
    void place(const std::vector<Item>& items) {
        std::int64_t shift = 0;
        std::size_t shape = 0;
        for (const Item& item : items) {
            if (item.is_literal()) continue;
            const bool near = !item.absolute && std::abs(item.offset) <= Column::kNear;
            if (shape == 0 && near) shift = item.offset;
            const std::int64_t offset = item.absolute ? item.offset : item.offset - shift;
            shape = child({shape, column(item.column), item.absolute, offset});
        }
        places_.push_back({shape, shift, static_cast<std::uint32_t>(shapes_[shape].lines++)});
        shapes_[shape].reach(shift, shift);
    }
    std::size_t column(std::size_t number) {
        std::size_t k = 0;
        while (k < columns_.size() && columns_[k].number != number) ++k;
        if (k == columns_.size()) columns_.emplace_back(number);
        return k;
    }
    std::size_t child(Shape made) {
        for (std::size_t k = 1; k < shapes_.size(); ++k) {
            const Shape& s = shapes_[k];
            if (s.parent == made.parent && s.column == made.column && s.absolute == made.absolute &&
                s.offset == made.offset)
                return k;
        }
        shapes_.push_back(std::move(made));
        return shapes_.size() - 1;
    }

    void forget() {
        values_.clear();
        for (Column& column : columns_) column.clear();
        for (Shape& shape : shapes_) shape.table.clear();
        root_ = values_.allocate(shapes_[0].lines);
    }

    void add(const Window& w, bool grow) {
        for (Column& column : columns_) column.fill(w, values_);
        for (std::size_t k = 0; k < shapes_.size(); ++k) fill(k, w);
        for (Place& p : places_)
            p.tuples = shapes_[p.shape].tuples.data() + (p.shift - shapes_[p.shape].low);
        for (std::int64_t t = w.begin; t < w.end; ++t) {
            for (std::size_t line = 0; line < places_.size(); ++line) {
                const Place& p = places_[line];
                const std::uint32_t value = p.tuples[t - w.begin] + p.number;
                found_.push_back(value);
                if (values_[value] != MemoValues::kUnknown) continue;
                values_[value] = MemoValues::kAbsent;  // until it is looked up
                lines_->name(line, w.x, t, names_.text);
                names_.finish();
                unknown_.push_back(value);
            }
            ++rows_;
            if (unknown_.size() >= kTogether) look_up(grow);
        }
        if (rows_ >= kRows) look_up(grow);
    }

    // The tuples of a shape at all places that lines, and the shapes built on it, look at.
    void fill(std::size_t k, const Window& w) {
        Shape& shape = shapes_[k];
        const std::int64_t begin = w.begin + shape.low;
        shape.tuples.resize(static_cast<std::size_t>(w.end + shape.high - begin));
        if (k == 0) return std::fill(shape.tuples.begin(), shape.tuples.end(), root_);
        const Shape& parent = shapes_[shape.parent];
        const std::uint32_t* first = parent.tuples.data() + (shape.low - parent.low);
        Column& column = columns_[shape.column];
        for (std::size_t i = 0; i < shape.tuples.size(); ++i) {
            const std::int64_t s = begin + static_cast<std::int64_t>(i);
            const std::int64_t row = row_of(shape.offset, shape.absolute, s, w.x.length);
            const std::uint32_t cell = column.at(w.x, row, wapiti_, values_);
            shape.tuples[i] =
                shape.is_cell() ? cell : shape.table.find(first[i], cell, shape.lines, values_);
        }
    }

    // Ids of the rows so far, those that were unknown first.
    void look_up(bool grow) {
        std::size_t k = 0;
        names_.look_up(vocabulary_, grow, [&](std::uint32_t id) {
            values_[unknown_[k++]] = static_cast<std::int32_t>(id);  // kAbsent is -1
        });
        unknown_.clear();
        std::size_t n = ids.size();
        ids.resize(n + found_.size());
        const std::uint32_t* value = found_.data();
        for (; rows_ > 0; --rows_) {
            for (std::size_t line = 0; line < places_.size(); ++line) {
                ids[n] = values_[*value++];
                n += ids[n] >= 0;
            }
            row_offsets.push_back(static_cast<std::int64_t>(n));
        }
        ids.resize(n);
        found_.clear();
    }

    const std::unique_ptr<Lines> lines_;
    const bool wapiti_;
    const std::int64_t begin_;  // the first position that has attributes
    Vocabulary& vocabulary_;
    std::size_t known_ = 0;  // size of the vocabulary when the values were found
    std::vector<Shape> shapes_;
    std::vector<Column> columns_;
    std::vector<Place> places_;  // of the lines
    MemoValues values_;
    std::uint32_t root_ = 0;
    // What waits to be looked up.
    std::vector<std::uint32_t> found_;  // [rows_ * lines] places of values
    std::size_t rows_ = 0;
    NameBatch names_;
    std::vector<std::uint32_t> unknown_;  // places of the names' values
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<TemplateReader>(m, "TemplateReader", "Lines of a template, and what they met.")
        .def(
            "__init__",
            [](TemplateReader* self, Input<std::int64_t> items, Input<std::int64_t> line_ends,
               nb::bytes pool, bool wapiti, std::int64_t begin, Vocabulary& vocabulary) {
                std::unique_ptr<Lines> lines;
                if (wapiti)
                    lines = std::make_unique<LinesOf<Bytes>>(items, line_ends, pool.c_str());
                else
                    lines = std::make_unique<LinesOf<Unicode>>(items, line_ends, pool.c_str());
                new (self) TemplateReader(std::move(lines), wapiti, begin, vocabulary);
            },
            nb::kw_only(), nb::arg("items"), nb::arg("line_ends"), nb::arg("pool"),
            nb::arg("wapiti"), nb::arg("begin"), nb::arg("vocabulary"), nb::keep_alive<1, 7>())
        .def(
            "read",
            [](TemplateReader& self, nb::bytes text, Input<std::uint32_t> cells,
               std::size_t n_columns, Input<std::int64_t> lengths, bool grow) {
                const Sequence first{text.c_str(), cells.data(), n_columns, 0, 0};
                self.ids.clear();
                self.row_offsets.assign(1, 0);
                bool done;
                {
                    GilReleased unlocked;
                    done = self.read(first, lengths.data(), lengths.size(), grow);
                }
                if (!done) throw Stopped{};
                return std::make_tuple(array_of(std::move(self.ids)),
                                       array_of(std::move(self.row_offsets)));
            },
            nb::arg("text"), nb::arg("cells"), nb::arg("n_columns"), nb::arg("lengths"),
            nb::arg("grow"),
            "Ids and offsets of the attributes of every position from `begin` on. After an error "
            "the reader must not be used again.");
});

}  // namespace chordal
