#include "scratch.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace chordal {

namespace {

constexpr std::size_t kLine = 64, kHugePage = std::size_t{1} << 21, kChunk = 4 * kHugePage;
#if defined(CHORDAL_SANITIZE)
constexpr std::size_t kLarge = SIZE_MAX;  // each array by itself, so that its ends are watched
#else
constexpr std::size_t kLarge = std::size_t{1} << 15;
#endif

std::size_t rounded(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

class Chunk {
public:
    explicit Chunk(std::size_t size) : size_(size), block_(std::malloc(size + kHugePage)) {
        if (!block_) throw std::bad_alloc();
        const auto address = reinterpret_cast<std::uintptr_t>(block_);
        data_ = static_cast<char*>(block_) + (rounded(address, kHugePage) - address);
#if defined(__linux__)
        madvise(data_, size, MADV_HUGEPAGE);
#endif
    }
    Chunk(Chunk&& other) noexcept : Chunk(other) { other.block_ = nullptr; }
    ~Chunk() { std::free(block_); }

    bool fits(std::size_t bytes) const { return bytes <= size_ - used_; }
    void* take(std::size_t bytes) {
        used_ += bytes;
        return data_ + (used_ - bytes);
    }
    void give_back(void* array, std::size_t bytes) {
        if (bytes <= used_ && array == data_ + (used_ - bytes)) used_ -= bytes;  // the last one
    }
    void clear() { used_ = 0; }
    std::size_t size() const { return size_; }

private:
    Chunk(const Chunk&) = default;

    std::size_t size_, used_ = 0;
    void* block_;
    char* data_;
};

class Arena {
public:
    void* take(std::size_t bytes) {
        if (chunks_.empty() || !chunks_.back().fits(bytes))
            chunks_.emplace_back(bytes < kChunk ? kChunk : rounded(bytes, kHugePage));
        ++arrays_;
        return chunks_.back().take(bytes);
    }
    void release(void* array, std::size_t bytes) noexcept {
        chunks_.back().give_back(array, bytes);
        if (--arrays_ > 0) return;
        while (chunks_.size() > 1 || (chunks_.size() == 1 && chunks_[0].size() > kChunk)) chunks_.pop_back();
        if (!chunks_.empty()) chunks_[0].clear();
    }

private:
    std::vector<Chunk> chunks_;
    std::size_t arrays_ = 0;
};

thread_local Arena arena;

}  // namespace

void* take_scratch(std::size_t bytes) {
    if (bytes > SIZE_MAX - kHugePage) throw std::bad_alloc();
    if (bytes >= kLarge) return arena.take(rounded(bytes, kLine));
    return ::operator new(bytes, std::align_val_t{kLine});
}

void release_scratch(void* array, std::size_t bytes) noexcept {
    if (bytes >= kLarge) return arena.release(array, rounded(bytes, kLine));
    ::operator delete(array, std::align_val_t{kLine});
}

}  // namespace chordal
