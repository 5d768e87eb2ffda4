// SPDX-License-Identifier: Apache-2.0

// Random logs for the tests.

package timeline

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
)

// hostile returns names that are unusual, or that would be harmful if they were not
// escaped.
func hostile() []string {
	return []string{
		"", "web", "web-1", "<script>alert(1)</script>", `"quoted'&amp;`, "]]>", "a\x00b\x1f\x7f", "a\nb\tc", "\xff\xfe", "\u202ereversed\u202c",
		strings.Repeat("long-", 60), strings.Repeat("w", 253), "北京-上海-广州-深圳-杭州-南京", "👩‍👩‍👧‍👦", "e\u0301e\u0301", "system:serviceaccount:a:b",
		"system:serviceaccount:c:b", "system:node:", "system:", "kwok", "alice@example.com", "https://issuer.example.com/#alice",
	}
}

// randomLog returns a log with random writes.
func randomLog(random *rand.Rand) (*Log, []audit.Write) {
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	name := func() string { return pick(hostile()...) }
	var log Log
	if random.Intn(4) > 0 {
		log.Object = &Selection{}
	}
	var all []audit.Write
	at := noon
	people := 1 + random.Intn(30)
	for range 1 + random.Intn(120) {
		at = at.Add(time.Duration(random.ExpFloat64() * math.Pow(10, float64(random.Intn(13)))))
		w := audit.Write{
			Verb: pick("create", "update", "patch", "delete", "deletecollection", name()), Group: pick("", "apps", "samplecontroller.k8s.io", name()),
			Resource: pick("pods", "replicasets", "deployments", "foos", name()), Subresource: pick("", "", "status", "scale", "binding", name()),
			Namespace: pick("default", "default", "", name()), Name: name(), User: fmt.Sprint(name(), random.Intn(people)),
			Agent: pick("kubectl/v1", "kube-controller-manager/v1", name()), Code: []int{200, 201, 409, 0, 599, -7}[random.Intn(6)],
			Received: at.Add(-time.Duration(random.Intn(40)) * time.Millisecond), Done: at,
		}
		if random.Intn(5) == 0 {
			w.Body = &audit.Body{Kind: name(), GenerateName: name(), Note: name(), Owners: []audit.Owner{{Kind: name(), Name: name()}}}
		}
		all = append(all, w)
		log.Add(w)
	}
	return &log, all
}

// forRandomPictures calls check with pictures of random logs, each in a subtest whose
// name is the seed.
func forRandomPictures(t *testing.T, check func(*testing.T, *Log, *Picture)) {
	for seed := range int64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			log, _ := randomLog(rand.New(rand.NewSource(seed)))
			picture, err := log.Picture()
			if errors.Is(err, errNoWrites) {
				t.Skip("nothing to draw")
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, log, picture)
		})
	}
	t.Run("the recorded log", func(t *testing.T) {
		log := lifeLog(t)
		picture, err := log.Picture()
		if err != nil {
			t.Fatal(err)
		}
		check(t, log, picture)
	})
}
