// SPDX-License-Identifier: Apache-2.0

package plan

// The types of the conditions of an owner's status.
const (
	// ConditionReady is True if the children are in their desired state and ready.
	ConditionReady = "Ready"
	// ConditionStalled is True if the owner is not ready and will not become ready until someone
	// acts: its user, an administrator, or whoever writes to its children. It has the reason and
	// message of Ready. It is absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionSuspended is True while the owner is suspended. Its reason equals its type. It is
	// absent otherwise.
	ConditionSuspended = "Suspended"
)

// The reasons of the condition Ready that every kind has. The Event that reports a transition of the
// condition has the same reason.
const (
	// ReasonAvailable (True): the children are as the owner's spec says, and ready.
	ReasonAvailable = "Available"
	// ReasonProgressing (False): a child is being created or rolled out, or could not be written
	// yet, for a temporary reason.
	ReasonProgressing = "Progressing"
	// ReasonDegraded (False): the owner was ready, and a part of what a child runs is lost.
	ReasonDegraded = "Degraded"
	// ReasonUnavailable (False): the same, and nothing is left.
	ReasonUnavailable = "Unavailable"
	// ReasonTerminating (False): the owner or a child is being deleted.
	ReasonTerminating = "Terminating"
	// ReasonSuspended (False): the owner needs a write, but is suspended.
	ReasonSuspended = "Suspended"
	// ReasonRepairsUndone is the reason of an Event, and of no condition: another client undoes each
	// repair of a child, at such long intervals that the owner is ready in between.
	ReasonRepairsUndone = "RepairsUndone"
)

// The suffixes of the reasons that require a user to act; the kind of the child comes first, as in
// "DeploymentFailed".
const (
	// SuffixConflict (False): the object with the child's name does not belong to the owner.
	SuffixConflict = "Conflict"
	// SuffixMissing (False): an object that the owner names does not exist.
	SuffixMissing = "Missing"
	// SuffixFailed (False): the API server refuses the child or does not store it as it was
	// written, or the child can't do its work.
	SuffixFailed = "Failed"
)

const (
	// MaxQuote bounds, in bytes, how much of a text of others a condition's message quotes. A
	// refusal can list every field of an object.
	MaxQuote = 512
	// MaxKept bounds, in bytes, how much the caches keep of texts that the API server does not
	// bound: an owner's kind and name, an image. No message quotes that much.
	MaxKept = 1024
	// maxQuotedName bounds, in bytes, how much of a kind or a name a message quotes. The API
	// server bounds neither in an owner reference.
	maxQuotedName = 253
)
