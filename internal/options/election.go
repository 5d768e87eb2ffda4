// SPDX-License-Identifier: Apache-2.0

// The flags of leader election, and the configuration of the election made from them.

package options

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"

	"example.com/sample-controller/internal/election"
	"example.com/sample-controller/internal/names"
)

// Election holds the flags of leader election, with the names and defaults of
// Kubernetes' own components.
type Election struct {
	// Enabled is true if the controller works only while it holds the Lease.
	Enabled bool

	leaseDuration     time.Duration
	renewDeadline     time.Duration
	retryPeriod       time.Duration
	resourceName      string
	resourceNamespace string
}

func (o *Election) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.Enabled, "leader-elect", false,
		"Reconcile only while holding the Lease, so that of several replicas only the leader works.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"Time after which a standby takes the Lease from a leader that has stopped renewing it. Must be the same for all replicas.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"Time for which the leader retries to renew the Lease before it gives up and exits. Must be less than the lease duration.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"Time between attempts to acquire or renew the Lease.")
	flags.StringVar(&o.resourceName, "leader-elect-resource-name", names.Controller,
		"Name of the Lease.")
	flags.StringVar(&o.resourceNamespace, "leader-elect-resource-namespace", "",
		"Namespace of the Lease. If not set: the namespace of the Pod that this runs in, else the namespace of the kubeconfig's context.")
}

// problems describes each flag with an invalid value. It checks none while leader
// election is off.
func (o *Election) problems() []string {
	if !o.Enabled {
		return nil
	}
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if o.leaseDuration < time.Second || o.leaseDuration%time.Second != 0 {
		refuse("-leader-elect-lease-duration=%v: must be whole seconds, 1s or more, because a Lease counts in seconds", o.leaseDuration)
	}
	if o.leaseDuration <= o.renewDeadline {
		refuse("-leader-elect-renew-deadline=%v: must be less than the lease duration of %v", o.renewDeadline, o.leaseDuration)
	}
	if o.retryPeriod <= 0 {
		refuse("-leader-elect-retry-period=%v: must be more than 0", o.retryPeriod)
	}
	if least := time.Duration(leaderelection.JitterFactor * float64(o.retryPeriod)); o.renewDeadline <= least {
		refuse("-leader-elect-renew-deadline=%v: must be more than %v, which is 1.2 times the retry period", o.renewDeadline, least)
	}
	for _, problem := range validation.IsDNS1123Subdomain(o.resourceName) {
		refuse("-leader-elect-resource-name=%q: %s", o.resourceName, problem)
	}
	if o.resourceNamespace != "" {
		for _, problem := range validation.IsDNS1123Label(o.resourceNamespace) {
			refuse("-leader-elect-resource-namespace=%q: %s", o.resourceNamespace, problem)
		}
	}
	return problems
}

// ApplyTo sets in config what the flags say: the Lease's name, its namespace if one is
// given, the durations, and an identity for this replica.
func (o *Election) ApplyTo(config *election.Config) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica for the election: %w", err)
	}
	config.Identity = host + "_" + string(uuid.NewUUID())
	config.Namespace = cmp.Or(o.resourceNamespace, config.Namespace)
	config.Name = o.resourceName
	config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = o.leaseDuration, o.renewDeadline, o.retryPeriod
	return nil
}
