// SPDX-License-Identifier: Apache-2.0

// Package calls counts a program's requests as the API server sees them: writes in its
// audit log, reads in the metrics of API Priority and Fairness, which know the account.
package calls

import (
	"context"
	"maps"

	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/audit"
)

// Counter counts the requests of one account.
type Counter struct {
	client kubernetes.Interface
	log    *audit.Log
	user   string
	// since holds the reads that have been counted before.
	since map[string]float64
}

// Counts holds the requests between two readings.
type Counts struct {
	// ByKind counts requests by "verb resource". Requests that are neither reads of a
	// known kind nor writes are "other requests".
	ByKind map[string]float64
	// Refused counts the writes that the server refused, such as conflicts.
	Refused int
	// Writes are all writes of the account, including refused ones.
	Writes []audit.Write
	// OtherWrites are the writes of all other accounts.
	OtherWrites []audit.Write
}

// Total returns the number of requests.
func (c Counts) Total() float64 {
	total := 0.0
	for _, n := range c.ByKind {
		total += n
	}
	return total
}

// NewCounter counts a user's requests from now on. auditLog is the path of the API
// server's audit log. Call CountFlows first.
func NewCounter(ctx context.Context, client kubernetes.Interface, auditLog, user string) (*Counter, error) {
	log, err := audit.OpenAtEnd(auditLog)
	if err != nil {
		return nil, err
	}
	since, err := Flows(ctx, client)
	return &Counter{client: client, log: log, user: user, since: since}, err
}

// Next returns the requests since the last call, or since NewCounter.
func (c *Counter) Next(ctx context.Context) (Counts, error) {
	flows, err := Flows(ctx, c.client)
	if err != nil {
		return Counts{}, err
	}
	all, err := c.log.Next()
	if err != nil {
		return Counts{}, err
	}
	counts := Counts{ByKind: map[string]float64{}}
	for kind, n := range flows {
		if n -= c.since[kind]; n > 0 {
			counts.ByKind[kind] = n
		}
	}
	c.since = maps.Clone(flows)
	// The log has each write, which the flows count as "other".
	others := counts.ByKind["other"]
	delete(counts.ByKind, "other")
	for _, write := range all {
		if write.User != c.user {
			counts.OtherWrites = append(counts.OtherWrites, write)
			continue
		}
		counts.Writes = append(counts.Writes, write)
		counts.ByKind[write.Verb+" "+write.Path()]++
		others--
		if !write.OK() {
			counts.Refused++
		}
	}
	if others > 0 {
		counts.ByKind["other requests"] = others
	}
	return counts, nil
}
