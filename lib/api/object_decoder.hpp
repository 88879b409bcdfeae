// SPDX-License-Identifier: Apache-2.0
// Objects of a stream, decoded one at a time while the stream is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/types.hpp"
#include "value/object_stream.hpp"

namespace kmm::api {

class RepeatedParts;

/// Decodes as `decode` does, item by item. Of Nodes and NodeModulesConfigs the parts that nothing here reads are left
/// out of the trees.
class ObjectDecoder final : public value::ObjectSink {
public:
    ObjectDecoder();
    /// `given_namespace` as for `decode`.
    explicit ObjectDecoder(std::optional<std::string> given_namespace);

    ~ObjectDecoder() override;
    ObjectDecoder(const ObjectDecoder&) = delete;
    ObjectDecoder& operator=(const ObjectDecoder&) = delete;

    [[nodiscard]] const value::Shape* shape(const value::Node& object, const value::Node* list) override;
    [[nodiscard]] std::uint32_t number_repeat() override;
    [[nodiscard]] bool knows(std::uint32_t number) const override;
    void take_repeats(const std::vector<value::Repeat>& repeats) override;
    [[nodiscard]] bool take_item(value::Document& item, const value::Node& list) override;
    void take_document(const value::Document& document) override;

    [[nodiscard]] std::unique_ptr<value::ObjectSink> part() override;
    void begin_piece(std::size_t number) override;
    void join(const std::vector<std::unique_ptr<value::ObjectSink>>& parts) override;

    /// Appends what was decoded, and the codes of `decode`.
    void commit(Objects& objects, Diagnostics& diagnostics) &&;

private:
    /// What a part took of a piece of the list.
    struct Piece {
        std::size_t number;
        Objects objects;
        Diagnostics faults;
    };
    /// Puts what was taken last to its piece.
    void end_piece();

    Objects objects_, items_;              ///< of finished documents; of the list that is being read
    Diagnostics faults_, item_faults_;
    std::unique_ptr<RepeatedParts> repeats_;
    TextPool texts_;
    std::vector<Piece> pieces_;
    std::size_t piece_ = 0;
    bool has_items_ = false;
    std::optional<std::string> given_namespace_;
};

}  // namespace kmm::api
