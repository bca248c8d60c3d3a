//! Reads an answer of the service back into the decision that it stands for.

use crate::fault::code;
use crate::json::{Value, shorten};
use crate::number::{self, NotUnsigned};
use crate::placement::{Outcome, reason_word};
use crate::read::{At, Read, Step, suggestion};
use cluster::{
    Alternative, Bindings, Breakdown, Decision, INSIDE_REASONS, Name, PolicyRejection,
    REASON_ORDER, Reason, Rejections, Revision, Term, Verdict, VmKey,
};
use std::borrow::Cow;
use std::sync::Arc;

/// Alternatives that an answer may list. The service lists three.
const MAX_ALTERNATIVES: usize = 64;

impl Read for Decision {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let outcome: Option<Outcome> = fields.required("outcome");
        let id: Option<Name> = fields.required("vm_id");
        let tenant: Option<Name> = fields.required("tenant");
        let placed = outcome == Some(Outcome::Placed);
        let host: Option<Name> = match placed {
            true => fields.required("host_id"),
            false => fields.optional("host_id"),
        };
        let incarnation = fields.integer("host_incarnation", 0..=u64::MAX).unwrap_or(0);
        let score = fields.with("score", read_signed);
        let breakdown = fields.with("breakdown", read_breakdown);
        if outcome == Some(Outcome::Rejected) && host.is_some() {
            let message = "a rejected VM has no host";
            fields.at.fault_in("host_id", code::CONFLICTING_FIELDS, message, "send null");
        }
        let bindings: Option<Bindings> = fields.optional("bindings");
        let alternatives = fields.list("alternatives", MAX_ALTERNATIVES);
        let rejections = fields.required_with("rejections", read_rejections);
        let policy_rejections = fields.list("policy_rejections", MAX_ALTERNATIVES);
        let hosts_considered = fields.required_integer("hosts_considered", 0..=U32);
        let strategy = fields.or_default("strategy");
        let based_on = fields.required_integer("based_on", 0..=u64::MAX);
        let policy_revision = fields.integer("policy_revision", 0..=u64::MAX).unwrap_or(0);
        let demand_revision = fields.integer("demand_revision", 0..=u64::MAX).unwrap_or(0);
        // Of no weight for whether the decision is right.
        for name in ["decision_id", "reservation_id"] {
            let _ = fields.with(name, |value, at| at.text(value));
        }
        let _: Option<u64> = fields.integer("revision", 0..=u64::MAX);
        fields.finish();
        let verdict = match placed {
            true => Verdict::Placed {
                host: host?,
                incarnation,
                score: score.unwrap_or(0),
                breakdown: breakdown.unwrap_or_default(),
                bindings: bindings.map(Arc::new),
            },
            false => Verdict::Rejected,
        };
        Some(Decision {
            vm: VmKey { tenant: tenant?, id: id? },
            verdict,
            strategy,
            alternatives: alternatives.into(),
            rejections: rejections?,
            policy_rejections,
            hosts_considered: hosts_considered?,
            based_on: Revision(based_on?),
            policy_revision,
            demand_revision,
        })
    }
}

const U32: u64 = u32::MAX as u64;

impl Read for Alternative {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let host = fields.required("host_id");
        let score = fields.required_with("score", read_signed);
        fields.finish();
        Some(Alternative { host: host?, score: score? })
    }
}

impl Read for PolicyRejection {
    fn read<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Self> {
        let mut fields = at.fields(value)?;
        let mut text = |name| fields.with(name, |value, at| at.text(value).map(str::to_owned));
        let (policy, rule, reason) = (text("policy"), text("rule"), text("reason"));
        let hosts: Option<u32> = fields.required_integer("hosts", 0..=U32);
        fields.finish();
        let hosts = hosts?;
        let [policy, rule, reason] = [policy, rule, reason].map(Option::unwrap_or_default);
        Some(PolicyRejection { policy, rule, reason, hosts })
    }
}

fn read_breakdown<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Breakdown> {
    let mut fields = at.fields(value)?;
    let parts = Term::ALL.map(|term| fields.with(term.name(), read_signed).unwrap_or(0));
    let policy = fields.with("policy", read_signed).unwrap_or(0);
    fields.finish();
    Some(Breakdown { terms: parts, policy })
}

fn read_rejections<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<Rejections> {
    let dimensions = at.dimensions.clone();
    let capacity = dimensions.iter().map(Reason::Capacity);
    let reasons: Vec<(String, Reason)> = REASON_ORDER
        .into_iter()
        .chain(capacity)
        .chain(INSIDE_REASONS)
        .map(|reason| (reason_word(reason, &dimensions), reason))
        .collect();
    let mut rejections = Rejections::default();
    for (name, value) in at.members(value)? {
        at.within(Step::Field(Cow::Borrowed(name.as_ref())), |at| {
            let count = at.integer(value, 0..=U32);
            match reasons.iter().find(|(word, _)| word == name) {
                Some((_, reason)) => {
                    rejections.add(*reason, count.and_then(|n| u32::try_from(n).ok()).unwrap_or(0));
                }
                None => {
                    let known: Vec<&str> = reasons.iter().map(|(word, _)| word.as_str()).collect();
                    let message = format!("{:?} is not a reason", shorten(name));
                    at.fault(code::UNKNOWN_CHOICE, message, suggestion(name, &known));
                }
            }
        });
    }
    Some(rejections)
}

/// A whole number of either sign, as scores are.
fn read_signed<'v>(value: &'v Value<'v>, at: &mut At<'v>) -> Option<i64> {
    let most = i64::MAX.unsigned_abs();
    let Value::Number(text) = value else {
        return at.integer(value, 0..=most).and_then(|number| i64::try_from(number).ok());
    };
    match text.strip_prefix('-').map(number::unsigned) {
        Some(Ok(size)) if size <= most => i64::try_from(size).ok()?.checked_neg(),
        Some(Ok(_) | Err(NotUnsigned::TooLarge)) => {
            let message = format!("{} is less than -{most}", shorten(text));
            at.fault(code::NUMBER_TOO_SMALL, message, "send the score as it was answered");
            None
        }
        Some(Err(_)) => {
            let message = format!("{} is not a whole number", shorten(text));
            at.fault(code::FRACTIONAL_NUMBER, message, "send the score as it was answered");
            None
        }
        None => at.integer(value, 0..=most).and_then(|number| i64::try_from(number).ok()),
    }
}
