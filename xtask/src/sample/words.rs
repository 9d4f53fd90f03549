//! What people write into the free fields: more than one language, and the signs that break bad programs.

/// What a customer wants done.
pub const SERVICES: [&str; 12] = [
    "深度保洁 3小时",
    "Window cleaning, 12 panes",
    "油烟机清洗",
    "Weekly cleaning, 2 rooms + kitchen",
    "搬家前后保洁 🧹",
    "Sofa & carpet, \"the big one\"",
    "空调清洗 x2",
    "Ironing, 20 shirts",
    "新房开荒 120㎡",
    "Nettoyage de printemps, façade comprise",
    "月嫂 26天",
    "Gartenhaus entrümpeln (Größe L)",
];

/// Remarks on requests, orders and schedules.
pub const NOTES: [&str; 10] = [
    "客户要求带吸尘器",
    "Key is with the neighbour, 3rd floor",
    "家里有猫 🐈 请关门",
    "Rings twice; don't use the bell \\ knock",
    "VIP",
    "地址：人民路 18 号 2 单元 501",
    "Bring own ladder (4 m)",
    "Allergisch gegen Chlor",
    "line one\nline two\ttabbed",
    "过敏体质，勿用漂白水",
];

/// Why an order was cancelled.
pub const REASONS: [&str; 7] = [
    "客户取消",
    "Customer found somebody else",
    "No worker free on that day",
    "重复下单",
    "Moved away",
    "价格太高",
    "Weather",
];

/// Where a request came from.
pub const SOURCES: [&str; 5] = ["phone", "wechat", "web", "referral", "walk_in"];

/// How an order was paid.
pub const PAYMENTS: [&str; 5] = ["wechat_pay", "alipay", "cash", "bank_transfer", "card"];
