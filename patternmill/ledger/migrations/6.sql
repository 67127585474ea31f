-- Version 5 to 6: what a checkout was opened for, and the order that became of it.

-- The rows whose products a checkout has, as they were picked.
CREATE TABLE checkout_lines (
    item_key    TEXT NOT NULL REFERENCES items (key),
    position    INTEGER NOT NULL,
    sku         TEXT NOT NULL,
    product_key TEXT NOT NULL,
    product_id  TEXT NOT NULL,
    quantity    INTEGER NOT NULL,
    note        TEXT,
    PRIMARY KEY (item_key, position)
);
CREATE INDEX checkout_lines_by_product ON checkout_lines (product_key);

-- What the service shows of a paid checkout.
CREATE TABLE orders (
    item_key    TEXT PRIMARY KEY REFERENCES items (key),
    order_id    TEXT,
    status      TEXT,
    answer      TEXT NOT NULL,      -- JSON, without addresses and what may be about the buyer
    since       {real} NOT NULL,    -- when the order was seen first
    read_at     {real} NOT NULL     -- and last
);
