/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The mutants: copies of the controller with one mistake each.

package explore

// mutant is a mistake: in a file, one text in place of another, which occurs once.
type mutant struct {
	name, file, from, to string
	// missed says why no world shows the mistake; it is empty for one that must be found.
	missed string
	// world is part of the names of the worlds that are explored. It is empty for those of
	// middle size, in their order.
	world string
}

// common are mistakes that published controllers of this kind make.
var common = []mutant{
	{name: "the Foos that wait for a name are not told when it is free", file: "handlers.go",
		from: "keys.Insert(k.foosAskingFor(cache.MetaObjectToName(child))...)", to: "_ = k.foosAskingFor"},
	{name: "the child of an earlier name stays", file: "writes.go",
		from: "s.decided.Obsolete[:min(len(s.decided.Obsolete), maxDeletions)]", to: "s.decided.Obsolete[:0]"},
	{name: "no status after a failed write", file: "controller.go",
		from: "if err != nil && queue.NextAttempt(err).Expected {", to: "if err != nil {"},
	{name: "the status is written in each sync", file: "writes.go",
		from: "if equality.Semantic.DeepEqual(foo.Status, status) {", to: "if equality.Semantic.DeepEqual(foo.Status, status) && false {"},
	{name: "drift of the template is not seen", file: "internal/plan/deployment.go",
		from: "setImage(ownedContainer(&deployment.Spec.Template.Spec), image)", to: "if deployment.UID == \"\" {\n	setImage(ownedContainer(&deployment.Spec.Template.Spec), image)\n}"},
	{name: "the update is made from the cache", file: "writes.go",
		from:   "live, err := s.live(ctx, s.Name(s.foo))\n\tif err != nil {\n\t\treturn err\n\t}\n\tdesired",
		to:     "live, err := s.decided.Named, error(nil)\n\tif err != nil {\n\t\treturn err\n\t}\n\tdesired",
		missed: "a patch holds only what differs and names the version in the cache, so that others' fields stay and a stale one is refused; TestSync and TestSimulation find what the cache lacks of an adoption"},
}

// mutations are mistakes of one line in plan, handlers, writes and queue.
var mutations = []mutant{
	{name: "a Foo with drift counts as one without", file: "internal/plan/decision.go",
		from: `if decided.Drift != "" {`, to: `if decided.Drift != "" && false {`},
	{name: "a deleted Foo gets a child", file: "internal/plan/decision.go",
		from:   "case IsTerminating(foo):\n\t\tdecided.Action = ActionWait",
		to:     "case false:\n\t\tdecided.Action = ActionWait",
		missed: "it creates one for each that the garbage collector deletes, so that a world has no end: a bound ends it, which fails the test and names no rule"},
	{name: "a child in deletion is repaired", file: "internal/plan/decision.go",
		from: "case IsTerminating(named):", to: "case false:"},
	{name: "an orphan is adopted without consent", file: "internal/plan/ownership.go",
		from: "object.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy] == foo.Name", to: "foo.Name != \"\""},
	{name: "the annotation of an adoption stays", file: "internal/plan/ownership.go",
		from: "delete(annotations, samplev1alpha1.AnnotationAdoptBy)", to: "_ = annotations"},
	{name: "the owner reference does not block a foreground deletion", file: "internal/plan/ownership.go",
		from:   "return *metav1.NewControllerRef(foo, samplev1alpha1.SchemeGroupVersion.WithKind(fooKind))",
		to:     "ref := *metav1.NewControllerRef(foo, samplev1alpha1.SchemeGroupVersion.WithKind(fooKind)); ref.BlockOwnerDeletion = nil; return ref",
		missed: "the garbage collector of the model deletes the children of a foreground deletion first, whatever they say; TestSync finds it"},
	{name: "other names' children are obsolete while the new one is refused", file: "children.go",
		from: "if !blocked && !failed {", to: "if !blocked {"},
	{name: "a child is deleted without a look whether its successor is there", file: "writes.go",
		from: "if !plan.IsControlledBy(wanted, s.foo) || plan.IsTerminating(wanted) {", to: "if _ = wanted; false {"},
	{name: "the Foo is not read before a child is deleted", file: "writes.go",
		from: "if err := s.controller.recheckFoo(ctx, s.foo); err != nil {\n\t\treturn err\n\t}\n\tctx, cancel := s.controller.withDeadline(ctx)\n\tdefer cancel()\n\terr = s.client().Delete",
		to:   "ctx, cancel := s.controller.withDeadline(ctx)\n\tdefer cancel()\n\terr = s.client().Delete"},
	{name: "the Foo is not read before a child is updated", file: "writes.go",
		from:   "if err := s.controller.recheckFoo(ctx, s.foo); err != nil {\n\t\treturn err\n\t}\n\tpatchType",
		to:     "patchType",
		missed: "it writes what the Foo asked for until now, and the next sync sets that right; no rule forbids it, because a Foo may also change right after it was read; TestOlderSpecNeverOverwritesANewer finds it"},
	{name: "a delete without preconditions", file: "writes.go",
		from: "Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},", to: ""},
	{name: "a Foo becomes ready by a child that may be older than its spec", file: "writes.go",
		from: "if s.confirmed.UpToDate(s.foo, cached) || !s.IsReady(cached) {", to: "if true {"},
	{name: "a write is not remembered until the cache has it", file: "writes.go",
		from: "s.controller.consistency.WroteAt(s.key(), s.foo.UID, s.indexer, stored.GetResourceVersion())", to: "",
		missed: "the write that follows is refused, which costs a call and breaks no rule here; TestSimulation has the rule, and finds it"},
	{name: "a failed sync is not tried again", file: "controller.go",
		from: "if !next.Again || ctx.Err() != nil {", to: "if true {"},
	{name: "the deletion of a child wakes nobody", file: "handlers.go",
		from: "DeleteFunc: k.deleted,", to: ""},
	{name: "a change of a child tells only who controls it now", file: "handlers.go",
		from: "k.enqueueFoosOf(before, after)", to: "k.enqueueFoosOf(after)",
		missed: "a Foo that loses the child it asks for is told by the name, and one that loses another has nothing to do; TestAResyncOfChildrenQueuesNothing finds it"},
	{name: "a change of a Foo in back-off is ignored", file: "handlers.go",
		from: "case plan.AsksTheSame(before, after) && c.backoff.InBackoff(key):", to: "case c.backoff.InBackoff(key):",
		missed: "the change waits for the end of the back-off, and no rule here is about time; TestResyncDoesNotRunAheadOfABackOff finds it"},
	{name: "the back-off of a deleted Foo lasts for the next of its name", file: "handlers.go",
		from: "// Now, not in the sync: by then there may be another Foo of the name.\n\tc.backoff.Forget(key)", to: "",
		missed: "the next Foo waits for its end, and no rule here is about time; TestBackOffIsNotInherited finds it"},
	{name: "a retry of the same write does not wait", file: "internal/queue/backoff.go",
		from: "k.failed, k.held = true, true\n\treturn deferred{f.err}", to: "return nil",
		missed: "writes too early break no rule here; TestARefusedWriteIsNotRepeatedWithEachStatusOfTheDeployment finds it"},
	{name: "a change that comes during a sync in back-off is dropped", file: "internal/queue/backoff.go",
		from: "return k.held || failing && !k.syncing", to: "return k.held || failing"},
	{name: "a held key is not added again", file: "internal/queue/backoff.go",
		from: "k.syncing, k.failed, k.held, k.until = false, false, false, time.Time{}\n\tr.queue.AddAfter(key, wait)",
		to:   "held := k.held\n\tk.syncing, k.failed, k.held, k.until = false, false, false, time.Time{}\n\tif !held {\n\t\tr.queue.AddAfter(key, wait)\n\t}"},
	{name: "a refusal is final", file: "internal/queue/retry.go",
		from: "return Attempt{Again: true, RefusalBackoff: true, Held: true}", to: "return Attempt{}"},
	{name: "a conflict is final", file: "internal/queue/retry.go",
		from: "return Attempt{Again: true, Expected: true}\n\t}", to: "return Attempt{Expected: true}\n\t}"},
	{name: "a stale cache ends the work on a key", file: "internal/queue/retry.go",
		from: "return Attempt{Again: true, After: BehindRetry, Expected: true}", to: "return Attempt{Expected: true}",
		missed: "the event that the cache lacks adds the key, too; TestNextAttempt finds it"},
	{name: "the status of an outage claims the old state", file: "internal/plan/ready.go",
		from: "case result.Failure != nil:\n\t\treturn c.judgeOutage(foo, result.Action, result.Failure)\n", to: "",
		missed: "the result of a failed write has no child, so that the Foo says that it is being created, and no rule here is about the words; TestAScaleThatCannotBeWrittenIsNotReady finds it"},
	{name: "a refusal is not told", file: "internal/plan/ready.go",
		from: "case failure.IsRefusal(result.Failure):", to: "case false:"},
	{name: "a conflict of names is not told", file: "internal/plan/ready.go",
		from: "case result.Action == ActionLeave:", to: "case false:"},
	{name: "the status names an old generation", file: "internal/plan/status.go",
		from: "status := samplev1alpha1.FooStatus{ObservedGeneration: foo.Generation,", to: "status := samplev1alpha1.FooStatus{ObservedGeneration: foo.Status.ObservedGeneration,"},
	{name: "a Deployment counts as rolled out before its controller has seen it", file: "internal/plan/deployment_status.go",
		from: "if status.ObservedGeneration >= deployment.Generation {", to: "if true {"},
	{name: "an owner is told by its name", file: "handlers.go",
		from: "if before.UID != after.UID {", to: "if false {",
		missed: "what is left of the first Foo of the name costs a wait, and no rule here is about time; TestWritesOfADeletedFooDelayNothing finds it"},
}

// guards are mistakes in what protects from denials, fights and outages of a rename.
var guards = []mutant{
	{name: "a child that serves is deleted at once", world: "in service", file: "internal/plan/decision.go",
		from: "case !c.IsWanted(foo), c.Serves == nil, !c.Serves(child):", to: "default:"},
	{name: "a child is deleted by what the cache has of its successor", world: "in service, drift", file: "writes.go",
		from: "taken = s.HasTakenOver(wanted, s.foo, s.seen)", to: "taken = s.HasTakenOver(s.decided.Named, s.foo, s.seen)"},
	{name: "a successor counts as ready while it differs", world: "in service, drift", file: "internal/plan/decision.go",
		from: "act == ActionNone && !IsNil(successor)", to: "(act == ActionNone || act == ActionUpdate) && !IsNil(successor)"},
	{name: "a child stays in service for ever", world: "in service", file: "internal/plan/decision.go",
		from: "case !c.IsWanted(foo), c.Serves == nil, !c.Serves(child):\n\t\treturn true\n\t}\n\treturn taken",
		to:   "case !c.IsWanted(foo), c.Serves == nil, !c.Serves(child):\n\t\treturn true\n\t}\n\treturn false"},
	{name: "a new child begins with a number of the cache", world: "open", file: "writes.go",
		from: "if !s.Inherits(s.foo) || plan.IsNil(earlier) {", to: "if true {"},
	{name: "a bare 409 or 404 is a lost race", world: "denied", file: "internal/failure/failure.go",
		from: "switch apierrors.ReasonForError(err) {\n\tcase metav1.StatusReasonConflict,", to: "if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {\n\t\treturn true\n\t}\n\tswitch apierrors.ReasonForError(err) {\n\tcase metav1.StatusReasonConflict,"},
	{name: "a webhook's 404 means that a child is gone", world: "denied", file: "writes.go",
		from: "if failure.IsNotFound(err, s.Resource.Resource) {", to: "if apierrors.IsNotFound(err) {"},
	{name: "a code that nobody knows is an outage", world: "denied", file: "internal/failure/failure.go",
		from: "return status.Code >= http.StatusBadRequest && status.Code < http.StatusInternalServerError", to: "return status.Code >= http.StatusBadRequest && status.Code < http.StatusTeapot"},
	{name: "a refusal that lasts is never final", world: "denied", file: "children.go",
		from: ">= stalledAfter,", to: ">= 1000*stalledAfter,"},
	{name: "repairs are not damped", world: "fight", file: "internal/consistency/repairs.go",
		from: "if series.count < freeRepairs {", to: "if true {"},
	{name: "a fight is not told", world: "fight", file: "internal/plan/ready.go",
		from: "case result.Fight != nil:", to: "case false:"},
	{name: "a fight never ends", world: "fight", file: "children.go",
		from: "if wait <= 0 { // the opponent has given in", to: "if wait <= -1000*time.Hour {"},
	{name: "a mutation of a creation counts as one of updates", world: "mutated", file: "writes.go",
		from: "s.has(child, s.DescribeDrift(child, s.foo, s.seen))\n\treturn nil", to: "s.has(child, s.DescribeDrift(child, s.foo, s.seen))\n\ts.admissionMutations.Observe(s.foo, child, s.drift)\n\treturn nil"},
}
