// SPDX-License-Identifier: Apache-2.0
// Values of which a fleet has few different ones and many copies.
#pragma once

#include <memory>
#include <utility>

namespace kmm::api {

/// A value that copies share until one of them is changed. Reads as a pointer to a const value, never null. Copying
/// costs a reference count. Threads may share a value, not one object of this class.
template <typename T>
class Shared {
public:
    Shared() = default;
    explicit Shared(T value) : value_(std::make_shared<T>(std::move(value))) {}
    Shared& operator=(T value) {
        value_ = std::make_shared<T>(std::move(value));
        return *this;
    }

    [[nodiscard]] const T& operator*() const noexcept { return value_ == nullptr ? blank() : *value_; }
    [[nodiscard]] const T* operator->() const noexcept { return &**this; }
    operator const T&() const noexcept {
        return **this;
    }  // NOLINT(google-explicit-constructor): it stands for the value
    /// The value for a change of this copy alone.
    [[nodiscard]] T& edit() {
        if (value_ == nullptr || value_.use_count() > 1) { value_ = std::make_shared<T>(**this); }
        return *value_;
    }
    /// True without comparing if both share one value.
    friend bool operator==(const Shared& left, const Shared& right) { return &*left == &*right || *left == *right; }
    friend bool operator==(const Shared& left, const T& right) { return *left == right; }

private:
    static const T& blank() {
        static const T value{};
        return value;
    }
    std::shared_ptr<T> value_;
};

}  // namespace kmm::api
