//! The parameters of a link: Fibre Channel, iSCSI over Ethernet, SAS.
//!
//! `payload_mb_s` is the rate to model with. Loading checks it against the arithmetic of line rate, encoding
//! and frame overhead ([`LinkParameters::framed_mb_s`]): never above it, and at most a tenth below.

use crate::parameter::Parameter;
use crate::parameter_set::{Inconsistency, expect, parameter_set};

parameter_set! {
    /// The parameters of one lane of a link, in one direction.
    LinkParameters / LinkOverrides {
        /// Protocol on the link.
        protocol: Parameter<String>, Text;
        /// Rate by which the link is sold.
        nominal_mb_s: Parameter<f64>, MbPerSecond, 50.0..=20_000.0;
        /// Symbols on the line.
        line_rate_gbaud: Parameter<f64>, GigabaudPerSecond, 0.5..=60.0;
        /// Line code.
        encoding: Parameter<String>, Text;
        /// Bits of data that the line code carries.
        encoding_data_bits: Parameter<u32>, Count, 8.0..=256.0;
        /// Bits on the line for them.
        encoding_line_bits: Parameter<u32>, Count, 8.0..=257.0;
        /// Data in a full frame.
        frame_payload_bytes: Parameter<u32>, Bytes, 64.0..=65_536.0;
        /// Everything else that a full frame costs on the line: headers, checks, delimiters, gaps.
        frame_overhead_bytes: Parameter<u32>, Bytes, 4.0..=1_024.0;
        /// Data rate to model with.
        payload_mb_s: Parameter<f64>, MbPerSecond, 50.0..=20_000.0;
        /// Time that a command and its answer cost besides the transfer of data.
        command_overhead_us: Parameter<f64>, Us, 0.5..=1_000.0;
        /// Longest reach on OM1 fibre; absent where it is not specified.
        metres_om1: Option<Parameter<u32>>, Metres, 1.0..=100_000.0;
        /// Longest reach on OM2 fibre.
        metres_om2: Option<Parameter<u32>>, Metres, 1.0..=100_000.0;
        /// Longest reach on OM3 fibre.
        metres_om3: Option<Parameter<u32>>, Metres, 1.0..=100_000.0;
        /// Longest reach on OM4 fibre.
        metres_om4: Option<Parameter<u32>>, Metres, 1.0..=100_000.0;
        /// Longest reach on OS1 single-mode fibre.
        metres_os1: Option<Parameter<u32>>, Metres, 1.0..=100_000.0;
        /// Longest reach on copper.
        metres_copper: Option<Parameter<u32>>, Metres, 1.0..=1_000.0;
        /// Whether the link trains its transmitter and retimes the signal in the module.
        retimed: Parameter<bool>, Flag;
    }
}

impl LinkParameters {
    /// Data rate of back-to-back full frames, in MB/s: line rate × code × payload ÷ frame ÷ 8 bits.
    pub fn framed_mb_s(&self) -> f64 {
        let code = f64::from(self.encoding_data_bits.value) / f64::from(self.encoding_line_bits.value);
        let payload = f64::from(self.frame_payload_bytes.value);
        let frame = payload + f64::from(self.frame_overhead_bytes.value);
        self.line_rate_gbaud.value * 1e3 / 8.0 * code * payload / frame
    }

    fn find_contradictions(&self) -> Vec<Inconsistency> {
        let mut found = Vec::new();
        let framed = self.framed_mb_s();
        expect(
            &mut found,
            (0.9..=1.0).contains(&(self.payload_mb_s.value / framed)),
            "payload_mb_s",
            || format!("is {}, but line rate, code and frame give {framed:.1}", self.payload_mb_s.value),
            "it must be 90 to 100 % of the framed rate",
        );
        found
    }
}
