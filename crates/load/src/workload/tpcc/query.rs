//! Statements of the transactions.

use crate::protocol::{Statement, Type};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    Discount,
    District,
    NextOrder,
    Order,
    NewOrder,
    Item,
    Stock,
    TakeStock,
    Line,
    PayWarehouse,
    Warehouse,
    PayDistrict,
    DistrictName,
    ByName,
    Payer,
    PayerData,
    Pay,
    PayBad,
    History,
    Customer,
    LastOrder,
    Lines,
    Oldest,
    Deliver,
    Orderer,
    Carrier,
    Delivered,
    Sum,
    Credit,
    LastNumber,
    LowStock,
}

impl Query {
    pub(super) const ALL: [Self; 31] = [
        Self::Discount,
        Self::District,
        Self::NextOrder,
        Self::Order,
        Self::NewOrder,
        Self::Item,
        Self::Stock,
        Self::TakeStock,
        Self::Line,
        Self::PayWarehouse,
        Self::Warehouse,
        Self::PayDistrict,
        Self::DistrictName,
        Self::ByName,
        Self::Payer,
        Self::PayerData,
        Self::Pay,
        Self::PayBad,
        Self::History,
        Self::Customer,
        Self::LastOrder,
        Self::Lines,
        Self::Oldest,
        Self::Deliver,
        Self::Orderer,
        Self::Carrier,
        Self::Delivered,
        Self::Sum,
        Self::Credit,
        Self::LastNumber,
        Self::LowStock,
    ];

    /// `#` stands for the number of the table. Amounts are sent in cents: a product with a decimal number is exact in
    /// both databases.
    #[allow(clippy::too_many_lines)] // one statement after the other
    fn text(self) -> &'static str {
        match self {
            Self::Discount => {
                "SELECT c_discount, c_last, c_credit, w_tax FROM customer#, warehouse# \
                 WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?"
            }
            Self::District => {
                "SELECT d_next_o_id, d_tax FROM district# WHERE d_w_id = ? AND d_id = ? FOR UPDATE"
            }
            Self::NextOrder => "UPDATE district# SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?",
            Self::Order => {
                "INSERT INTO orders# (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, NOW(), ?, ?)"
            }
            Self::NewOrder => {
                "INSERT INTO new_orders# (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)"
            }
            Self::Item => "SELECT i_price, i_name, i_data FROM item# WHERE i_id = ?",
            Self::Stock => {
                "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
                 s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock# WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE"
            }
            Self::TakeStock => {
                "UPDATE stock# SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?"
            }
            Self::Line => {
                "INSERT INTO order_line# (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ? * 0.01, ?)"
            }
            Self::PayWarehouse => "UPDATE warehouse# SET w_ytd = w_ytd + ? * 0.01 WHERE w_id = ?",
            Self::Warehouse => {
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse# WHERE w_id = ?"
            }
            Self::PayDistrict => {
                "UPDATE district# SET d_ytd = d_ytd + ? * 0.01 WHERE d_w_id = ? AND d_id = ?"
            }
            Self::DistrictName => {
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district# \
                 WHERE d_w_id = ? AND d_id = ?"
            }
            Self::ByName => {
                "SELECT c_id FROM customer# WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
            }
            Self::Payer => {
                "SELECT c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
                 c_credit_lim, c_discount, c_balance FROM customer# \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
            }
            Self::PayerData => {
                "SELECT c_data FROM customer# WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Self::Pay => {
                "UPDATE customer# SET c_balance = c_balance - ? * 0.01, c_ytd_payment = c_ytd_payment + ? * 0.01, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Self::PayBad => {
                "UPDATE customer# SET c_balance = c_balance - ? * 0.01, c_ytd_payment = c_ytd_payment + ? * 0.01, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Self::History => {
                "INSERT INTO history# (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, NOW(), ? * 0.01, ?)"
            }
            Self::Customer => {
                "SELECT c_balance, c_first, c_middle, c_last FROM customer# \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Self::LastOrder => {
                "SELECT o_id, o_carrier_id, o_entry_d FROM orders# WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1"
            }
            Self::Lines => {
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line# \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            Self::Oldest => {
                "SELECT no_o_id FROM new_orders# WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE"
            }
            Self::Deliver => {
                "DELETE FROM new_orders# WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"
            }
            Self::Orderer => {
                "SELECT o_c_id FROM orders# WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
            }
            Self::Carrier => {
                "UPDATE orders# SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
            }
            Self::Delivered => {
                "UPDATE order_line# SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            Self::Sum => {
                "SELECT SUM(ol_amount) FROM order_line# WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            Self::Credit => {
                "UPDATE customer# SET c_balance = c_balance + ? * 0.01, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Self::LastNumber => "SELECT d_next_o_id FROM district# WHERE d_w_id = ? AND d_id = ?",
            Self::LowStock => {
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line#, stock# WHERE ol_w_id = ? AND ol_d_id = ? \
                 AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ol_w_id AND s_i_id = ol_i_id AND s_quantity < ?"
            }
        }
    }

    pub(super) fn statement(self, table: u32) -> Statement {
        let text = self.text().replace('#', &table.to_string());
        // Text or number: what is sent says so, and the server tells what it wants.
        let parameters = vec![Type::Integer; text.matches('?').count()];
        Statement { text, parameters, ..Statement::default() }
    }
}
